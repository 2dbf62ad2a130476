// What another stack will look at.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const thing = new Thing("thing", { label: "shared" });
export const label = thing.shout;
export const token = pulumi.secret("t-1");
export const list = [1, 2, { three: thing.id }];

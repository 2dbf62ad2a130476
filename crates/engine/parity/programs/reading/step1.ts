// Looks at objects that are not the program's, and builds on them.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const mine = new Thing("mine", { label: "m" });
const seen = Thing.get("seen", "foreign-1");
const again = Thing.get("again", mine.id);
new Thing("user", { label: seen.shout, extra: { reference: mine } });
export const label = seen.label;
export const reference = mine;
export const through = again.arn;

// Functions of providers: with values, with outputs that are not known yet, and one that refuses.
import * as pulumi from "@pulumi/pulumi";
import { lookup, lookupOutput, Provider, Thing } from "./parity";

const thing = new Thing("thing", { label: "t" });
const provider = new Provider("special", { prefix: "s" });
export const nothing = lookup({ id: "nobody" });
export const found = lookupOutput({ id: thing.id });
export const special = lookup({ id: "nobody" }, { provider });
export const hidden = lookupOutput({ id: pulumi.secret("nobody") }).label;
export const later = lookupOutput({ id: "thing-1" }, { dependsOn: [thing] }).found;

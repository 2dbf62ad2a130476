// What was secret is not, and the other way round.
import * as pulumi from "@pulumi/pulumi";
import { Blind, Thing } from "./parity";

const config = new pulumi.Config();
const password = config.requireSecret("password");

const open = new Thing("open", { label: pulumi.secret("open"), size: 3 });
const closed = new Thing("closed", { label: "shown", tags: { token: "t", plain: pulumi.secret("p") } });
const marked = new Thing("marked", { label: "quiet" });
new Blind("follows", { label: password, items: [marked.shout, "s"] });
new Thing("nested", { extra: pulumi.secret({ a: { b: ["c"] }, n: 2 }) });

export const pass = "public";
export const shout = marked.shout;
export const mixed = { secret: closed.label, open: open.label };

// Secrets from everywhere, going everywhere.
import * as pulumi from "@pulumi/pulumi";
import { Blind, Thing } from "./parity";

const config = new pulumi.Config();
const password = config.requireSecret("password");
const settings = config.requireObject<{ depth: number; list: string[] }>("settings");

const open = new Thing("open", { label: "open", size: config.requireNumber("count"), extra: settings });
const closed = new Thing("closed", { label: password, tags: { token: pulumi.secret("t"), plain: "p" } });
const marked = new Thing("marked", { label: "quiet" }, { additionalSecretOutputs: ["shout", "arn"] });
new Blind("follows", { label: closed.shout, items: [marked.shout, pulumi.secret("s")] });
new Thing("nested", { extra: pulumi.secret({ a: { b: ["c"] }, n: 1 }) });

export const pass = password;
export const shout = marked.shout;
export const mixed = { secret: closed.label, open: open.label };
export const unwrapped = pulumi.unsecret(password).apply((text) => text.length);

// Order, time limits and replacements that another resource asks for.
import * as pulumi from "@pulumi/pulumi";
import { Plain, Thing } from "./parity";

const group = new pulumi.ComponentResource("demo:index:Group", "group");
const member = new Thing("member", { label: "m" }, { parent: group });
const first = new Thing("first", { label: "f", kind: "stone" }, { customTimeouts: { create: "5m", delete: "1h30m" } });
const second = new Plain("second", { label: first.shout, tags: { a: first.arn, b: member.label } }, { dependsOn: [group] });
new Thing("pair", { label: "p" }, { replaceWith: [first], dependsOn: [second] });
new Thing("triggered", { label: "t" }, { replacementTrigger: "two", dependsOn: [second] });

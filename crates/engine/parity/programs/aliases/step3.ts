// Back out of the group, with whole URNs as aliases; the old aliases are gone.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const urn = (rest: string) => `urn:pulumi:${pulumi.getStack()}::${pulumi.getProject()}::${rest}`;

const renamed = new Thing("new-name", { label: "changed" });
new Thing("moved", { label: "m" }, { aliases: [urn("demo:other:Crowd$parity:index:Thing::moved")] });
new Thing("again", { label: "t" }, { aliases: [urn("parity:index:Thing::nobody"), urn("parity:index:Thing::retyped")] });
new Thing("user", { label: renamed.shout }, { dependsOn: [renamed] });

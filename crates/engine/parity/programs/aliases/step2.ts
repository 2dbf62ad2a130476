// The same objects under other names, types and parents; nothing may be replaced.
import * as pulumi from "@pulumi/pulumi";
import { Plain, Thing } from "./parity";

class Group extends pulumi.ComponentResource {
    constructor(name: string, options?: pulumi.ComponentResourceOptions) {
        super("demo:other:Crowd", name, {}, { ...options, aliases: [{ name: "group", type: "demo:index:Group" }] });
        const inner = new Thing(`${name}-inner`, { label: "group" }, { parent: this });
        new Plain("leaf", { label: inner.label }, { parent: inner });
        this.registerOutputs();
    }
}

const renamed = new Thing("new-name", { label: "r" }, { aliases: [{ name: "renamed" }] });
const group = new Group("crowd");
new Thing("moved", { label: "m" }, { parent: group, aliases: [{ parent: pulumi.rootStackResource }] });
new Thing("retyped", { label: "t" }, { aliases: [{ type: "parity:index:Plain" }] });
new Thing("user", { label: renamed.shout }, { dependsOn: [renamed] });

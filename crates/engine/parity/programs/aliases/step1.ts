// Objects before they get other names, types and parents.
import * as pulumi from "@pulumi/pulumi";
import { Plain, Thing } from "./parity";

class Group extends pulumi.ComponentResource {
    constructor(name: string, options?: pulumi.ComponentResourceOptions) {
        super("demo:index:Group", name, {}, options);
        const inner = new Thing(`${name}-inner`, { label: name }, { parent: this });
        new Plain("leaf", { label: inner.label }, { parent: inner });
        this.registerOutputs();
    }
}

const renamed = new Thing("renamed", { label: "r" });
new Thing("moved", { label: "m" });
new Plain("retyped", { label: "t" });
new Thing("user", { label: renamed.shout }, { dependsOn: [renamed] });
new Group("group");

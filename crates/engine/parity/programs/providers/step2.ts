// One provider changes, one must be replaced, and one object moves from one to the other.
import * as pulumi from "@pulumi/pulumi";
import { Provider, Thing } from "./parity";

class Group extends pulumi.ComponentResource {
    constructor(name: string, options?: pulumi.ComponentResourceOptions) {
        super("demo:index:Group", name, {}, options);
        new Thing(`${name}-inner`, {}, { parent: this });
    }
}

const byDefault = new Thing("by-default");
const north = new Provider("north", { prefix: "changed", realm: "n" });
const south = new Provider("south", { prefix: pulumi.secret("hidden"), realm: "moved" });
new Thing("explicit", { label: "e" }, { provider: south });
new Group("through-map", { providers: { parity: south } });
new Group("through-list", { providers: [north] });
new Thing("child", {}, { parent: new Thing("parent", {}, { provider: south }) });

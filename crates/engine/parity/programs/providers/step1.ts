// Providers of several kinds: from configuration, explicit, inherited, with secrets and outputs.
import * as pulumi from "@pulumi/pulumi";
import { Provider, Thing } from "./parity";

class Group extends pulumi.ComponentResource {
    constructor(name: string, options?: pulumi.ComponentResourceOptions) {
        super("demo:index:Group", name, {}, options);
        new Thing(`${name}-inner`, {}, { parent: this });
    }
}

const byDefault = new Thing("by-default");
const north = new Provider("north", { prefix: byDefault.arn, realm: "n" });
const south = new Provider("south", { prefix: pulumi.secret("hidden"), realm: "s" });
new Thing("explicit", { label: "e" }, { provider: north });
new Group("through-map", { providers: { parity: south } });
new Group("through-list", { providers: [north] });
new Thing("child", {}, { parent: new Thing("parent", {}, { provider: south }) });

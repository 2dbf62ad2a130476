// A component that lives in a plugin, with a method.
import * as pulumi from "@pulumi/pulumi";
import { Provider, Thing } from "./parity";

class Pair extends pulumi.ComponentResource {
    readonly joined!: pulumi.Output<string>;
    readonly hidden!: pulumi.Output<string>;

    constructor(name: string, args: { label: pulumi.Input<string> }, options?: pulumi.ComponentResourceOptions) {
        super("kit:index:Pair", name, { ...args, joined: undefined, hidden: undefined }, { version: "2.0.0", ...options }, true);
    }

    repeat(times: pulumi.Input<number>): pulumi.Output<{ text: string }> {
        return pulumi.runtime.call("kit:index:Pair/repeat", { __self__: this, times }, this);
    }
}

const before = new Thing("before", { label: "c" });
const south = new Provider("south", { prefix: "s" });
const pair = new Pair("pair", { label: before.shout });
const other = new Pair("other", { label: "loud" }, { providers: [south], protect: false, aliases: [{ name: "earlier" }] });
new Thing("after", { label: pair.joined, extra: { text: pair.repeat(before.size).text } }, { dependsOn: [other] });
export const joined = pair.joined;
export const hidden = other.hidden;

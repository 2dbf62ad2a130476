// Two objects, one after the other, and a component that holds a third.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

class Group extends pulumi.ComponentResource {
    readonly sizes: pulumi.Output<number>;

    constructor(name: string, size: number, options?: pulumi.ComponentResourceOptions) {
        super("demo:index:Group", name, { size }, options);
        const inner = new Thing(`${name}-inner`, { size, label: "inner" }, { parent: this });
        this.sizes = inner.size;
        this.registerOutputs({ sizes: this.sizes, inner });
    }
}

const first = new Thing("first", { label: "one", size: 1, tags: { a: "x", b: "y" } });
const second = new Thing("second", { label: first.shout, size: 2 });
const group = new Group("group", 3);

export const shout = second.shout;
export const sizes = group.sizes;
export const nested = { list: [first.id, "text", 4.5, true, null], empty: {} };

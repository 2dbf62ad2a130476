// One object changes, one goes, one comes; the component changes as well.
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

const first = new Thing("first", { label: "uno", size: 1, tags: { a: "x", c: "z" } });
const third = new Thing("third", { label: first.shout, items: [first.id, "b"] });
const group = new Group("group", 4);

export const shout = third.shout;
export const sizes = group.sizes;

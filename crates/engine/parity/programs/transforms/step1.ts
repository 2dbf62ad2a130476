// Changes what others register: on a resource, on a component and on the whole stack.
import * as pulumi from "@pulumi/pulumi";
import { lookupOutput, Thing } from "./parity";

pulumi.runtime.registerResourceTransform((args) => {
    if (args.type !== "parity:index:Thing") {
        return undefined;
    }
    return { props: { ...args.props, tags: { ...args.props.tags, all: "stack" } }, opts: args.opts };
});
pulumi.runtime.registerInvokeTransform((args) => ({ args: { ...args.args, id: "from-1" }, opts: args.opts }));

class Group extends pulumi.ComponentResource {
    constructor(name: string, options?: pulumi.ComponentResourceOptions) {
        super("demo:index:Group", name, {}, options);
        new Thing(`${name}-inner`, { label: "inner" }, { parent: this });
    }
}

const from = new Thing("from", { label: "origin" }, {
    transforms: [(args) => ({ props: { ...args.props, size: 9 }, opts: pulumi.mergeOptions(args.opts, { ignoreChanges: ["label"] }) })],
});
new Group("group", {
    transforms: [
        (args) => ({ props: { ...args.props, label: `changed-${args.name}` }, opts: { ...args.opts, protect: false, customTimeouts: { create: "1m" } } }),
    ],
});
new Thing("after", { label: "a" }, {
    transforms: [async (args) => ({ props: args.props, opts: pulumi.mergeOptions(args.opts, { dependsOn: [from] }) })],
});
export const found = lookupOutput({ id: "nobody" }, { dependsOn: [from] }).label;

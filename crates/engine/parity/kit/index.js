// A package with a remote component: written with the SDK, running in a process of its own, and
// registering its children with the engine that asked for it.
"use strict";

const pulumi = require("@pulumi/pulumi");
const { main } = require("@pulumi/pulumi/provider");

class Thing extends pulumi.CustomResource {
    constructor(name, args, options) {
        super("parity:index:Thing", name, { ...args, shout: undefined, arn: undefined }, { version: "1.0.0", ...options });
    }
}

class Pair extends pulumi.ComponentResource {
    constructor(name, args, options) {
        super("kit:index:Pair", name, args, options);
        const left = new Thing(`${name}-left`, { label: args.label, size: 1 }, { parent: this });
        const right = new Thing(`${name}-right`, { label: left.shout, size: 2 }, { parent: this });
        this.joined = pulumi.interpolate`${left.shout}+${right.shout}`;
        this.registerOutputs({ joined: this.joined });
    }
}

const kit = {
    version: "2.0.0",

    async construct(name, _type, inputs, options) {
        const pair = new Pair(name, inputs, options);
        return { urn: pair.urn, state: { joined: pair.joined, hidden: pulumi.secret(pair.joined) } };
    },

    async call(_token, inputs) {
        const text = pulumi.output(inputs.times).apply((times) => "ab".repeat(times));
        return { outputs: { text } };
    },
};

main(kit, process.argv.slice(2));

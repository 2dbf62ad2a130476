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

/** Tells where it runs. */
class Place extends pulumi.ComponentResource {
    constructor(name, _args, options) {
        super("kit:index:Place", name, {}, options);
        this.organization = pulumi.getOrganization();
        this.project = pulumi.getProject();
        this.stack = pulumi.getStack();
        this.registerOutputs({ organization: this.organization, project: this.project, stack: this.stack });
    }
}

/** Hands its options on to what it is made of. */
class Simple extends pulumi.ComponentResource {
    constructor(name, args, options) {
        super("kit:index:Simple", name, args, options);
        const { ignoreChanges, replacementTrigger } = options;
        this.thing = new Thing(`${name}-inner`, { label: args.label }, { parent: this, ignoreChanges, replacementTrigger });
        this.label = this.thing.label;
        this.registerOutputs({ label: this.label });
    }
}

/** Shows a resource of its own, which others can use. */
class Shelf extends pulumi.ComponentResource {
    constructor(name, args, options) {
        super("kit:index:Shelf", name, args, options);
        this.thing = new Thing(`${name}-thing`, { label: args.label }, { parent: this });
        this.label = this.thing.label;
        this.registerOutputs({ label: this.label, thing: this.thing });
    }
}

/** Is built on a resource of somebody else. */
class Copy extends pulumi.ComponentResource {
    constructor(name, args, options) {
        super("kit:index:Copy", name, args, options);
        this.original = pulumi.output(args.original);
        const label = this.original.apply((original) => original.label);
        this.copied = new Thing(`${name}-copied`, { label }, { parent: this });
        this.registerOutputs({ original: this.original, copied: this.copied });
    }
}

class ThingModule {
    version = "1.0.0";

    construct(name, type, urn) {
        if (type !== "parity:index:Thing") {
            throw new Error(`no resource ${type} is known here`);
        }
        return new Thing(name, { label: undefined }, { urn });
    }
}
pulumi.runtime.registerResourceModule("parity", "index", new ThingModule());

const shown = {
    Pair: (pair) => ({ joined: pair.joined, hidden: pulumi.secret(pair.joined) }),
    Place: ({ organization, project, stack }) => ({ organization, project, stack }),
    Simple: ({ label }) => ({ label }),
    Shelf: ({ label, thing }) => ({ label, thing }),
    Copy: ({ original, copied }) => ({ original, copied }),
};
const components = { Pair, Place, Simple, Shelf, Copy };

const kit = {
    version: "2.0.0",

    async construct(name, type, inputs, options) {
        const kind = type.split(":").pop();
        const component = new components[kind](name, inputs, options);
        return { urn: component.urn, state: shown[kind](component) };
    },

    async call(token, inputs) {
        if (token === "kit:index:Pair/plain") {
            return { outputs: { result: "a plain value" } };
        }
        const text = pulumi.output(inputs.times).apply((times) => "ab".repeat(times));
        return { outputs: { text } };
    },
};

main(kit, process.argv.slice(2));

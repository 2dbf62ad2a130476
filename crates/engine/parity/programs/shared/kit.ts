// The components of the test plugin `kit`, as programs use them.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

type Options = pulumi.ComponentResourceOptions;

class Remote extends pulumi.ComponentResource {
    constructor(type: string, name: string, args: pulumi.Inputs, outputs: string[], options?: Options) {
        const none = Object.fromEntries(outputs.map((output) => [output, undefined]));
        super(`kit:index:${type}`, name, { ...args, ...none }, { version: "2.0.0", ...options }, true);
    }
}

export class Place extends Remote {
    readonly organization!: pulumi.Output<string>;
    readonly project!: pulumi.Output<string>;
    readonly stack!: pulumi.Output<string>;

    constructor(name: string) {
        super("Place", name, {}, ["organization", "project", "stack"]);
    }
}

export class Simple extends Remote {
    readonly label!: pulumi.Output<string>;

    constructor(name: string, args: { label: pulumi.Input<string> }, options?: Options) {
        super("Simple", name, args, [], options);
    }
}

export class Shelf extends Remote {
    readonly label!: pulumi.Output<string>;
    readonly thing!: pulumi.Output<Thing>;

    constructor(name: string, args: { label: pulumi.Input<string> }, options?: Options) {
        super("Shelf", name, args, ["thing"], options);
    }
}

export class Copy extends Remote {
    readonly original!: pulumi.Output<Thing>;
    readonly copied!: pulumi.Output<Thing>;

    constructor(name: string, args: { original: pulumi.Input<Thing> }, options?: Options) {
        super("Copy", name, args, ["copied"], options);
    }
}

// What comes back from a plugin as a resource becomes an object of the program again.
pulumi.runtime.registerResourceModule("parity", "index", {
    version: "1.0.0",
    construct: (name: string, type: string, urn: string) => {
        if (type !== "parity:index:Thing") {
            throw new Error(`no resource ${type} is known here`);
        }
        return new Thing(name, {}, { urn });
    },
});

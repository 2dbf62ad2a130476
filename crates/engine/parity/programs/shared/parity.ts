// The resources of the test provider, as programs use them.
import * as pulumi from "@pulumi/pulumi";

export interface ThingArgs {
    size?: pulumi.Input<number>;
    label?: pulumi.Input<string>;
    /** Another kind is another object. */
    kind?: pulumi.Input<string>;
    /** There cannot be two at once. */
    exclusive?: pulumi.Input<boolean>;
    /** Names of inputs that cannot change without a replacement. */
    fixed?: pulumi.Input<string[]>;
    tags?: pulumi.Input<Record<string, pulumi.Input<string>>>;
    items?: pulumi.Input<pulumi.Input<string>[]>;
    source?: pulumi.Input<pulumi.asset.Asset | pulumi.asset.Archive>;
    /** Anything else that a test wants to hand over. */
    extra?: any;
}

const OUTPUTS = { shout: undefined, serial: undefined, arn: undefined };

class Base extends pulumi.CustomResource {
    readonly size!: pulumi.Output<number>;
    readonly label!: pulumi.Output<string>;
    readonly kind!: pulumi.Output<string>;
    readonly extra!: pulumi.Output<any>;
    readonly shout!: pulumi.Output<string>;
    readonly serial!: pulumi.Output<number>;
    readonly arn!: pulumi.Output<string>;

    constructor(type: string, name: string, args: ThingArgs, options?: pulumi.CustomResourceOptions) {
        super(`parity:index:${type}`, name, { size: undefined, label: undefined, ...args, ...OUTPUTS }, { version: "1.0.0", ...options });
    }
}

/** Says exactly what differs. */
export class Thing extends Base {
    constructor(name: string, args: ThingArgs = {}, options?: pulumi.CustomResourceOptions) {
        super("Thing", name, args, options);
    }

    static get(name: string, id: pulumi.Input<pulumi.ID>, options?: pulumi.CustomResourceOptions): Thing {
        return new Thing(name, {}, { ...options, id });
    }
}

/** Says which properties differ. */
export class Plain extends Base {
    constructor(name: string, args: ThingArgs = {}, options?: pulumi.CustomResourceOptions) {
        super("Plain", name, args, options);
    }
}

/** Cannot say whether anything differs. */
export class Blind extends Base {
    constructor(name: string, args: ThingArgs = {}, options?: pulumi.CustomResourceOptions) {
        super("Blind", name, args, options);
    }
}

export interface ProviderArgs {
    prefix?: pulumi.Input<string>;
    /** Objects of one realm cannot be moved into another. */
    realm?: pulumi.Input<string>;
}

export class Provider extends pulumi.ProviderResource {
    constructor(name: string, args: ProviderArgs = {}, options?: pulumi.ResourceOptions) {
        super("parity", name, { ...args }, options);
    }
}

export interface LookupResult {
    found: boolean;
    label: string;
}

export function lookup(args: { id: string }, options?: pulumi.InvokeOptions): Promise<LookupResult> {
    return pulumi.runtime.invoke("parity:index:lookup", args, options);
}

export function lookupOutput(args: { id: pulumi.Input<string> }, options?: pulumi.InvokeOutputOptions): pulumi.Output<LookupResult> {
    return pulumi.runtime.invokeOutput("parity:index:lookup", args, options);
}

// The package of the plugin `tally`, as programs use it.
import * as pulumi from "@pulumi/pulumi";

const VERSION = "0.1.0";

export interface CounterArgs {
    start: pulumi.Input<number>;
    /** Another unit is another object. */
    unit: pulumi.Input<string>;
    tags?: pulumi.Input<Record<string, string>>;
    token?: pulumi.Input<string>;
}

export class Counter extends pulumi.CustomResource {
    readonly shown!: pulumi.Output<string>;
    readonly token!: pulumi.Output<string>;
    readonly writes!: pulumi.Output<number>;

    constructor(name: string, args: CounterArgs, options?: pulumi.CustomResourceOptions) {
        const secret = args.token === undefined ? undefined : pulumi.secret(args.token);
        super("tally:index:Counter", name, { ...args, token: secret, shown: undefined, writes: undefined }, { version: VERSION, ...options });
    }
}

export class Pair extends pulumi.ComponentResource {
    readonly shown!: pulumi.Output<string>;

    constructor(name: string, args: { unit: pulumi.Input<string> }, options?: pulumi.ComponentResourceOptions) {
        super("tally:index:Pair", name, { ...args, shown: undefined }, { version: VERSION, ...options }, true);
    }
}

export class CounterProvider extends pulumi.ProviderResource {
    constructor(name: string, args: { prefix?: pulumi.Input<string> }, options?: pulumi.ResourceOptions) {
        super("tally", name, { ...args }, { version: VERSION, ...options });
    }
}

export function sum(numbers: pulumi.Input<number>[]): pulumi.Output<{ total: number; text: string }> {
    return pulumi.runtime.invokeOutput("tally:index:sum", { numbers }, { version: VERSION });
}

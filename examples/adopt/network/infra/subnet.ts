import * as pulumi from "@pulumi/pulumi";

export interface SubnetArgs {
    cidr: pulumi.Input<string>;
    zone: pulumi.Input<number>;
}

// Stands for a cloud: what it makes is only recorded. It is serialised, so it uses nothing from outside.
const provider: pulumi.dynamic.ResourceProvider = {
    async create(inputs: any) {
        return { id: `subnet-${inputs.zone}`, outs: inputs };
    },
    async diff(_id: string, olds: any, news: any) {
        return { changes: olds.cidr !== news.cidr };
    },
    async update(_id: string, _olds: any, news: any) {
        return { outs: news };
    },
};

export class Subnet extends pulumi.dynamic.Resource {
    public readonly cidr!: pulumi.Output<string>;

    constructor(name: string, args: SubnetArgs, opts?: pulumi.CustomResourceOptions) {
        super(provider, name, args, opts);
    }
}

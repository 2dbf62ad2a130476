// The same with another setting of the provider and other inputs.
import * as pulumi from "@pulumi/pulumi";

const becomes = (packageName: string, parameter: string) => {
    const base = { baseProviderName: "parity", baseProviderVersion: "1.0.0", baseProviderDownloadUrl: "" };
    return pulumi.runtime.registerPackage({ ...base, packageName, packageVersion: "2.5.0", base64Parameter: Buffer.from(parameter).toString("base64") });
};
const hello = becomes("hello", "HelloWorld");
const goodbye = becomes("goodbye", "GoodbyeWorld");

class Greeting extends pulumi.CustomResource {
    readonly shout!: pulumi.Output<string>;

    constructor(type: string, name: string, label: pulumi.Input<string>, reference: Promise<string>, options?: pulumi.CustomResourceOptions) {
        super(type, name, { label, shout: undefined }, options, false, reference);
    }
}
class GoodbyeProvider extends pulumi.ProviderResource {
    constructor(name: string, prefix: string) {
        super("goodbye", name, { prefix }, {}, false, goodbye);
    }
}

const first = new Greeting("hello:index:Thing", "first", "uno", hello);
new Greeting("goodbye:index:Thing", "second", first.shout, goodbye);
const explicit = new GoodbyeProvider("explicit", "Moon");
new Greeting("goodbye:index:Thing", "third", "three", goodbye, { provider: explicit });
export const texts = [
    pulumi.runtime.invokeOutput("hello:index:parameter", {}, {}, hello),
    pulumi.runtime.invokeOutput("goodbye:index:parameter", {}, { provider: explicit }, goodbye),
];

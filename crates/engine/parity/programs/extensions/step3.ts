// The newer version for all, and no other change.
import * as pulumi from "@pulumi/pulumi";
import { Provider, Thing } from "./parity";

const extends_ = (packageName: string, packageVersion: string, parameter: string) => {
    const base = { baseProviderName: "parity", baseProviderVersion: "1.0.0", baseProviderDownloadUrl: "" };
    const base64Parameter = Buffer.from(parameter).toString("base64");
    return pulumi.runtime.registerPackage({ ...base, packageName, packageVersion, base64Parameter, extension: true });
};
const newer = extends_("crown", "2.0.0", "platinum");

class Extra extends pulumi.CustomResource {
    readonly shout!: pulumi.Output<string>;

    constructor(type: string, name: string, label: pulumi.Input<string>, reference: Promise<string>, options?: pulumi.CustomResourceOptions) {
        super(type, name, { label, shout: undefined }, options, false, reference);
    }
}

const first = new Extra("crown:index:Thing", "first", "uno", newer);
new Thing("base", { label: first.shout });
const explicit = new Provider("explicit", { prefix: "p" }, { dependsOn: first });
new Extra("crown:index:Thing", "second", "due", newer, { provider: explicit });

// Packages that extend the plugin's own: beside it, on a provider of the program, and two at once.
import * as pulumi from "@pulumi/pulumi";
import { Provider, Thing } from "./parity";

const extends_ = (packageName: string, packageVersion: string, parameter: string) => {
    const base = { baseProviderName: "parity", baseProviderVersion: "1.0.0", baseProviderDownloadUrl: "" };
    const base64Parameter = Buffer.from(parameter).toString("base64");
    return pulumi.runtime.registerPackage({ ...base, packageName, packageVersion, base64Parameter, extension: true });
};
const crown = extends_("crown", "1.0.0", "gold");
const sceptre = extends_("sceptre", "1.0.0", "silver");

class Extra extends pulumi.CustomResource {
    readonly shout!: pulumi.Output<string>;

    constructor(type: string, name: string, label: pulumi.Input<string>, reference: Promise<string>, options?: pulumi.CustomResourceOptions) {
        super(type, name, { label, shout: undefined }, options, false, reference);
    }
}

const first = new Extra("crown:index:Thing", "first", "one", crown);
new Thing("base", { label: first.shout });
const explicit = new Provider("explicit", { prefix: "p" }, { dependsOn: first });
new Extra("crown:index:Thing", "second", "two", crown, { provider: explicit });
export const third = new Extra("sceptre:index:Thing", "third", "three", sceptre, { dependsOn: first }).shout;

// The first is changed under a hook that fails; the second has something that cannot be called.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const ignored = new pulumi.ResourceHook("ignored", () => { throw new Error("nobody minds"); }, { ignoreErrors: true });
const panic = new pulumi.ResourceHook("panic", () => {
    const nothing: any = undefined;
    return nothing.such.thing();
});
const careless = new Thing("careless", { label: "d" }, { hooks: { afterCreate: [ignored], beforeUpdate: [ignored] } });
new Thing("startled", { label: "s" }, { dependsOn: [careless], hooks: { afterCreate: [panic] } });

// Makes what `plan.json` says, which the test draws at random.
import * as fs from "fs";
import * as pulumi from "@pulumi/pulumi";
import { Blind, Plain, Provider, Thing } from "./parity";

const plan = JSON.parse(fs.readFileSync("plan.json", "utf8"));
const made: Record<string, any> = {};
const kinds: Record<string, any> = { Thing, Plain, Blind };

/** Values as they are; `{$: "secret", of}` and `{$: "output", of, name}` are what they say. */
function value(given: any): any {
    if (Array.isArray(given)) {
        return given.map(value);
    }
    if (given === null || typeof given !== "object") {
        return given;
    }
    switch (given.$) {
        case "secret":
            return pulumi.secret(value(given.of));
        case "output":
            return made[given.of][given.name];
        case "text":
            return new pulumi.asset.StringAsset(given.of);
        case "files":
            return new pulumi.asset.AssetArchive({ "a.txt": new pulumi.asset.StringAsset(given.of) });
    }
    return Object.fromEntries(Object.entries(given).map(([key, inner]) => [key, value(inner)]));
}

/** Options that name resources name them by the names of the plan. */
function options(given: any): any {
    const { parent, provider, dependsOn, deletedWith, replaceWith, aliases, replacementTrigger, ...rest } = given;
    const all = (names?: string[]) => names?.map((name) => made[name]);
    return {
        ...rest,
        parent: parent && made[parent],
        provider: provider && made[provider],
        dependsOn: all(dependsOn),
        deletedWith: deletedWith && made[deletedWith],
        replaceWith: all(replaceWith),
        aliases: aliases?.map((name: string) => ({ name })),
        ...(replacementTrigger === undefined ? {} : { replacementTrigger: value(replacementTrigger) }),
    };
}

for (const one of plan.resources) {
    switch (one.kind) {
        case "Provider":
            made[one.name] = new Provider(one.name, value(one.inputs), { version: "1.0.0", ...options(one.options) });
            break;
        case "Group":
            made[one.name] = new pulumi.ComponentResource("demo:index:Group", one.name, {}, options(one.options));
            break;
        default:
            made[one.name] = new kinds[one.kind](one.name, value(one.inputs), options(one.options));
    }
}
for (const [name, given] of Object.entries(plan.outputs)) {
    exports[name] = value(given);
}

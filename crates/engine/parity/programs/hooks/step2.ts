// Code of the program that runs before and after something is done to a resource.
import * as fs from "fs";
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const log = (line: string) => fs.appendFileSync(`${process.env.PARITY_WORLD}/notes`, `${line}\n`);

const tell = (moment: string) =>
    new pulumi.ResourceHook(moment, (args) => {
        log(`${moment} ${args.name} ${args.id ?? "-"} ${JSON.stringify(args.newInputs ?? {})} ${JSON.stringify(args.oldInputs ?? {})}`);
    });
const dry = new pulumi.ResourceHook("dry", (args) => log(`dry ${args.name}`), { onDryRun: true });
const deleting = new pulumi.ResourceHook("deleting", (args) => log(`deleting ${args.name}`));

new Thing("watched", { label: "two" }, {
    hooks: {
        beforeCreate: [tell("before-create"), dry],
        afterCreate: [tell("after-create")],
        beforeUpdate: [tell("before-update")],
        afterUpdate: [tell("after-update")],
        beforeDelete: [deleting],
    },
});

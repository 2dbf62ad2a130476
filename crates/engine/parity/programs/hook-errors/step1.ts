// Hooks that fail and do not matter, and one that asks for another try.
import * as fs from "fs";
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const log = (line: string) => fs.appendFileSync(`${process.env.PARITY_WORLD}/notes`, `${line}\n`);
const ignored = new pulumi.ResourceHook("ignored", () => { throw new Error("nobody minds"); }, { ignoreErrors: true });
const again = new pulumi.ErrorHook("again", (args) => {
    log(`${args.failedOperation} ${args.name} ${args.errors.length} ${JSON.stringify(args.newInputs ?? {})}`);
    return args.errors.length < 2;
});
new Thing("careless", { label: "c" }, { hooks: { afterCreate: [ignored], beforeUpdate: [ignored] } });
new Thing("flaky", { label: "f" }, { hooks: { onError: [again] } });

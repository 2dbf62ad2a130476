// Refuses a change before it happens.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const refuse = new pulumi.ResourceHook("refuse", () => {
    throw new Error("not today");
});
new Thing("watched", { label: "three" }, { hooks: { beforeUpdate: [refuse] } });

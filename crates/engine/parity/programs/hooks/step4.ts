// Complains after something was made.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const complain = new pulumi.ResourceHook("complain", () => {
    throw new Error("too late");
});
const watched = new Thing("watched", { label: "two" });
new Thing("loud", { label: "l" }, { dependsOn: [watched], hooks: { afterCreate: [complain] } });

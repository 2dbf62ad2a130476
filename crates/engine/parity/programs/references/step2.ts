// Builds on the outputs of the other stack.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const other = new pulumi.StackReference(`organization/${pulumi.getProject()}/base`);
new Thing("local", { label: other.requireOutput("label"), extra: other.getOutput("list") });
new Thing("quiet", { label: other.getOutput("token") });
export const missing = other.getOutput("nothing");
export const token = other.getOutput("token");
export const details = other.getOutputDetails("label").then((details) => details.value);

// Only unwanted objects are in the way.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const parent = new pulumi.ComponentResource("demo:index:Safe", "safe", {}, { protect: true });
new Thing("kept", { label: "k", kind: "wood" }, { protect: true });

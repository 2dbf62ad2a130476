// The protection is taken away; the objects can be replaced.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const parent = new pulumi.ComponentResource("demo:index:Safe", "safe", {});
new Thing("inside", { label: "i" }, { parent });
new Thing("kept", { label: "k", kind: "stone" });

// One protected object is no longer wanted, another would have to be replaced.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const parent = new pulumi.ComponentResource("demo:index:Safe", "safe", {}, { protect: true });
new Thing("kept", { label: "k", kind: "stone" }, { protect: true });

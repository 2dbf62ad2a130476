// Protected objects, one of them through its parent.
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./parity";

const parent = new pulumi.ComponentResource("demo:index:Safe", "safe", {}, { protect: true });
new Thing("inside", { label: "i" }, { parent });
new Thing("kept", { label: "k", kind: "wood" }, { protect: true });
new Thing("free", { label: "f" });

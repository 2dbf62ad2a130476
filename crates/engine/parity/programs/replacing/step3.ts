// The chain is replaced once more, and its end is gone.
import { Thing } from "./parity";

const base = new Thing("base", { kind: "glass", label: "c" });
const bound = new Thing("bound", { label: base.arn, fixed: ["label"] });
export const end = bound.shout;

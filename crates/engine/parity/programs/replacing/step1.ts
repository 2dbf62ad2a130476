// A chain of objects behind one that will be replaced.
import { Plain, Thing } from "./parity";

const base = new Thing("base", { kind: "wood", label: "b" });
// Cannot be moved from one base to another.
const bound = new Thing("bound", { label: base.arn, fixed: ["label"] });
// Can.
const loose = new Plain("loose", { label: bound.arn });
export const end = loose.shout;

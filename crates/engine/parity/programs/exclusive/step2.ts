// Objects of which there cannot be two at once, and others that stand on them.
import { Plain, Thing } from "./parity";

const base = new Thing("base", { kind: "stone", exclusive: true });
const bound = new Thing("bound", { label: base.arn, fixed: ["label"] });
const loose = new Thing("loose", { label: base.arn });
const far = new Plain("far", { label: bound.arn, fixed: ["label"] }, { dependsOn: [loose] });
// The program knows better than the provider, in both directions.
const first = new Thing("delete-first", { kind: "stone" }, { deleteBeforeReplace: true, dependsOn: [far] });
const later = new Thing("delete-later", { kind: "stone", exclusive: true }, { deleteBeforeReplace: false, dependsOn: [first] });
export const end = later.id;

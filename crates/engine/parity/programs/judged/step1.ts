// Some labels that policies have something to say about, and one that they correct.
import { Thing } from "./parity";

const first = new Thing("first", { label: "a rather long label" });
new Thing("second", { label: "nobody's" }, { dependsOn: [first] });
new Thing("third", { label: "dry" }, { dependsOn: [first] });

// Too many things, each of which is well.
import { Thing } from "./parity";

const first = new Thing("first", { label: "short" });
for (const name of ["second", "third", "fourth"]) {
    new Thing(name, { label: "nobody's" }, { dependsOn: [first] });
}

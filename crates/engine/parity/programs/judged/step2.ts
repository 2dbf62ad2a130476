// One more thing, which is not kind.
import { Thing } from "./parity";

const first = new Thing("first", { label: "short" });
const second = new Thing("second", { label: "nobody's" }, { dependsOn: [first] });
new Thing("fourth", { label: "forbidden words" }, { dependsOn: [second] });

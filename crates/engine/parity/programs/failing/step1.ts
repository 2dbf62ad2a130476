// A chain and a neighbour; the test decides what fails.
import { Thing } from "./parity";

const first = new Thing("first", { label: "f" });
const second = new Thing("second", { label: first.shout });
new Thing("third", { label: second.shout }, { dependsOn: [second] });

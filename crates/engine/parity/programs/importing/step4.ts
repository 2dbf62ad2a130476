// Wants an object that nobody has.
import { Thing } from "./parity";

const neighbour = new Thing("neighbour", { label: "n" });
const taken = new Thing("taken", { label: "old", size: 5 }, { import: "found-1" });
new Thing("absent", {}, { import: "nowhere-1", dependsOn: [neighbour, taken] });

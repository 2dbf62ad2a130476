// Takes over an object that is there already, exactly as it is.
import { Thing } from "./parity";

new Thing("neighbour", { label: "n" });
new Thing("taken", { label: "old", size: 5 }, { import: "found-1" });

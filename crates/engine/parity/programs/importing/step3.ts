// Takes over two more: one that differs from what the program wants, one that is not there.
import { Thing } from "./parity";

new Thing("neighbour", { label: "n" });
new Thing("taken", { label: "old", size: 5 }, { import: "found-1" });
new Thing("differs", { label: "wanted", size: 5 }, { import: "found-2" });

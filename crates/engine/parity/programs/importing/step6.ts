// What was protected by its import is let go.
import { Thing } from "./parity";

new Thing("neighbour", { label: "n" });
new Thing("taken", { label: "new", size: 5 });
new Thing("asked-for", { label: "third", size: 5 });

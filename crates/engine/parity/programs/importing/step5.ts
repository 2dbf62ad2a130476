// The objects stay without the option, and one of them changes.
import { Thing } from "./parity";

new Thing("neighbour", { label: "n" });
new Thing("taken", { label: "new", size: 5 });
new Thing("asked-for", { label: "third", size: 5 }, { protect: true });

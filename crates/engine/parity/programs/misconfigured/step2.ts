// Somebody uses it.
import { Provider, Thing } from "./parity";

const closed = new Provider("closed", { realm: "closed" });
const free = new Thing("free", { label: "f" });
new Thing("bound", { label: "b" }, { provider: closed, dependsOn: [free] });

// A provider that refuses its settings, and nobody who uses it.
import { Provider, Thing } from "./parity";

new Provider("closed", { realm: "closed" });
new Thing("free", { label: "f" });

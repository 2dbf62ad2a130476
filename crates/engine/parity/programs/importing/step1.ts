// Nothing yet but a neighbour.
import { Thing } from "./parity";

new Thing("neighbour", { label: "n" });

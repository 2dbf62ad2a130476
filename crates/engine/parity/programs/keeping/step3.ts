// The house goes, and what is in it.
import { Thing } from "./parity";

new Thing("left-behind", { label: "l", kind: "stone" }, { retainOnDelete: true });

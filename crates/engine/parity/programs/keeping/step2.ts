// What is kept is replaced or no longer wanted; the house is replaced.
import { Plain, Thing } from "./parity";

const house = new Thing("house", { label: "h", kind: "stone" });
new Thing("room", { label: "r" }, { deletedWith: house });
new Plain("door", { label: "d" }, { deletedWith: house, dependsOn: [house] });
new Thing("left-behind", { label: "l", kind: "stone" }, { retainOnDelete: true });

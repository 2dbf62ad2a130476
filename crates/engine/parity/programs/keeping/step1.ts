// Objects that outlive their record, and objects that go with another.
import { Plain, Thing } from "./parity";

const house = new Thing("house", { label: "h", kind: "wood" });
new Thing("room", { label: "r" }, { deletedWith: house });
new Plain("door", { label: "d" }, { deletedWith: house, dependsOn: [house] });
new Thing("left-behind", { label: "l", kind: "wood" }, { retainOnDelete: true });
new Thing("gone-for-good", { label: "g" }, { retainOnDelete: true });

// Everything changes.
import { Blind, Plain, Thing } from "./parity";

const tags = { a: "3", b: "4" };
const items = ["z", "w"];
new Thing("top", { label: "m", size: 2, tags }, { ignoreChanges: ["label"] });
new Thing("nested", { label: "m", tags, items }, { ignoreChanges: ["tags.a", "items[1]"] });
new Plain("all", { label: "m", tags }, { ignoreChanges: ["*"] });
new Thing("absent", { label: "m", tags: { new: "n" }, items }, { ignoreChanges: ["tags.new", "items"] });
new Thing("strict", { label: "m", tags }, { replaceOnChanges: ["tags.a"] });
new Plain("strict-plain", { label: "m", tags }, { replaceOnChanges: ["label"] });
new Blind("strict-blind", { label: "m", tags, items }, { replaceOnChanges: ["*"] });
new Blind("blind", { label: "m", tags: { a: "1" }, items: ["x", "y", "z"] });

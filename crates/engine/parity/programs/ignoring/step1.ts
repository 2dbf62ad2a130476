// Properties that the program does not insist on, and properties that it insists on strictly.
import { Blind, Plain, Thing } from "./parity";

const tags = { a: "1", b: "2" };
const items = ["x", "y"];
new Thing("top", { label: "l", size: 1, tags }, { ignoreChanges: ["label"] });
new Thing("nested", { label: "l", tags, items }, { ignoreChanges: ["tags.a", "items[1]"] });
new Plain("all", { label: "l", tags }, { ignoreChanges: ["*"] });
new Thing("absent", { label: "l" }, { ignoreChanges: ["tags.new", "items"] });
new Thing("strict", { label: "l", tags }, { replaceOnChanges: ["tags.a"] });
new Plain("strict-plain", { label: "l", tags }, { replaceOnChanges: ["label"] });
new Blind("strict-blind", { label: "l", tags, items }, { replaceOnChanges: ["*"] });
new Blind("blind", { label: "l", tags, items });

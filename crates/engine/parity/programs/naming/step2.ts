// What always gets the same label has to go before its replacement can come.
import { Blind, Plain, Thing } from "./parity";

new Thing("patterned", { kind: "stone" });
new Thing("labelled", { label: "by hand", kind: "stone" });
new Plain("verbatim", { kind: "stone" });
new Blind("unnamed", { size: 2 });

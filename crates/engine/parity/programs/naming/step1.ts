// Objects that get their labels by the rules of the stack, if they have none.
import { Blind, Plain, Thing } from "./parity";

new Thing("patterned");
new Thing("labelled", { label: "by hand" });
new Plain("verbatim");
new Blind("unnamed");

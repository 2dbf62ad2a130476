// Resources go into components of a plugin and come out of them; options reach what is inside.
import * as pulumi from "@pulumi/pulumi";
import { Copy, Place, Shelf, Simple } from "./kit";
import { Thing } from "./parity";

const shelf = new Shelf("shelf", { label: "foo" });
const copy = new Copy("copy", { original: shelf.thing });
new Thing("by-label", { label: shelf.label });
new Thing("by-reference", { label: shelf.thing.label });
new Thing("through", { label: copy.original.label });
new Thing("copied", { label: copy.copied.label });
new Thing("holds", { label: "h", extra: { reference: shelf.thing } });
new Simple("ignoring", { label: "one" }, { ignoreChanges: ["label"] });
new Simple("heeding", { label: "one" });
new Simple("triggered", { label: "t" }, { replacementTrigger: "first" });
const place = new Place("place");
export const where = [place.organization, place.project, place.stack];
export const plain = pulumi.runtime.callSingle<string>("kit:index:Pair/plain", { __self__: shelf }, shelf);

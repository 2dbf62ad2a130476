// Everything changes, and there is a new neighbour.
import { Thing } from "./parity";

const first = new Thing("first", { label: "g" });
const second = new Thing("second", { label: first.shout });
new Thing("third", { label: second.shout }, { dependsOn: [second] });
const neighbour = new Thing("neighbour", { label: "n" });
export const shout = neighbour.shout;

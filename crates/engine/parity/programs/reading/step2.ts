// Looks at another object under the same name, and makes one where it only looked before.
import { Thing } from "./parity";

const mine = new Thing("mine", { label: "m" });
const seen = Thing.get("seen", "foreign-2");
new Thing("again", { label: "made" });
new Thing("user", { label: seen.shout });
export const label = seen.label;

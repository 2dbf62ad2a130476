// Looks at an object that is not there.
import { Thing } from "./parity";

const mine = new Thing("mine", { label: "m" });
const seen = Thing.get("seen", "nowhere-1", { dependsOn: [mine] });
export const label = seen.label;

// A function refuses its arguments, and the program goes on without it.
import { lookup, Thing } from "./parity";

const answer = lookup({ id: "bad" }).then(
    () => "accepted",
    () => "refused",
);
new Thing("thing", { label: answer });

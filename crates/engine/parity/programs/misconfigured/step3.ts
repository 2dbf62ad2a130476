// It is gone.
import { Thing } from "./parity";

new Thing("free", { label: "g" });

// The plugin refuses to make one.
import { Counter } from "./tally";

new Counter("refused", { start: -1, unit: "apples" });

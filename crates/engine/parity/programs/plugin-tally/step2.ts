// One changes, one becomes another object, one goes.
import * as pulumi from "@pulumi/pulumi";
import { Counter, CounterProvider, Pair, sum } from "./tally";

const apples = new Counter("apples", { start: 4, unit: "apples", tags: { farm: "south", row: "2" }, token: "quiet" });
const crates = new Counter("crates", { start: 1, unit: apples.shown });
const roman = new CounterProvider("roman", { prefix: "nr. " });
const pair = new Pair("pair", { unit: "boots" });
export const shown = apples.shown;
export const hidden = apples.token;
export const both = pair.shown;
export const total = sum([1, 2, 3]).total;
export const later = sum([apples.writes, 4]).text;

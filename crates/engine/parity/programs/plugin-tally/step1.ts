// A plugin that is written with Pulumi's Go SDK: resources, a function, a provider, a component.
import * as pulumi from "@pulumi/pulumi";
import { Counter, CounterProvider, Pair, sum } from "./tally";

const apples = new Counter("apples", { start: 3, unit: "apples", tags: { farm: "north" }, token: "quiet" });
const crates = new Counter("crates", { start: 1, unit: apples.shown });
const roman = new CounterProvider("roman", { prefix: "no. " });
new Counter("numbered", { start: 7, unit: "days" }, { provider: roman, dependsOn: [crates] });
const pair = new Pair("pair", { unit: "shoes" });
export const shown = apples.shown;
export const hidden = apples.token;
export const both = pair.shown;
export const total = sum([1, 2, 3]).total;
export const later = sum([apples.writes, 4]).text;

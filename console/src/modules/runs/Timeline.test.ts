/** Which rows the timeline has. */
import { describe, expect, it } from "vitest";

import type { UnitModel } from "../../api/live/model";
import { rowsOf } from "./Timeline";

const unit = (name: string, layer: number, status: UnitModel["status"], more: Partial<UnitModel> = {}): UnitModel => ({
  name, layer, needs: [], status, phases: [], resources: { total: 0, started: 0, done: 0, failed: 0, planned: 0, by_op: {} }, ...more,
});

function layer(number: number, status: UnitModel["status"], more: Partial<UnitModel> = {}): UnitModel[] {
  return Array.from({ length: 10 }, (_, index) => unit(`u${number}-${index}`, number, status, more));
}

const open = (rows: ReturnType<typeof rowsOf>) => rows.flatMap((row) => (row.kind === "group" ? [[row.layer, row.open]] : []));

describe("the timeline of a large run", () => {
  it("folds layers that are done, and none that runs, failed or is unknown", () => {
    const mixed = [...layer(0, "succeeded"), ...layer(1, "skipped"), ...layer(2, "running"), ...layer(3, "failed"), ...layer(4, "succeeded", { attention: true })];
    const rows = rowsOf(mixed, "layer");
    expect(open(rows)).toEqual([[0, false], [1, false], [2, true], [3, true], [4, true]]);
    expect(rows).toHaveLength(5 + 30);
  });

  it("keeps the chosen unit in sight, and what somebody opened or closed", () => {
    const done = [...layer(0, "succeeded"), ...layer(1, "succeeded"), ...layer(2, "running")];
    expect(open(rowsOf(done, "layer", new Map(), "u1-3"))).toEqual([[0, false], [1, true], [2, true]]);
    expect(open(rowsOf(done, "layer", new Map([[0, true], [2, false]])))).toEqual([[0, true], [1, false], [2, false]]);
  });

  it("shows a small run whole", () => {
    expect(open(rowsOf([...layer(0, "succeeded"), ...layer(1, "skipped")], "layer"))).toEqual([[0, true], [1, true]]);
  });
});

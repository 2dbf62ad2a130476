/** What a plan leaves as it is. */
import { describe, expect, it } from "vitest";

import type { UnitModel } from "../../api/live/model";
import { sparedBy, unchangedOf } from "./kept";

const row = (path: string) => ({ path, new: "1" });

describe("what a plan leaves as it is", () => {
  it("is every property that no change is about, whole or in part", () => {
    const all = [row("engine"), row("tags"), row("rules[0].port"), row("ruleset")];
    expect(unchangedOf(all, [row("tags.team"), row("rules")]).map((one) => one.path)).toEqual(["engine", "ruleset"]);
  });

  it("is a unit that uses what another one gives and has nothing to do", () => {
    const unit = (name: string, needs: string[], create: number, status: UnitModel["status"] = "succeeded") =>
      ({ name, needs, status, layer: 0, phases: [], resources: { total: 0, started: 0, done: 0, failed: 0, planned: 0, by_op: { create, same: 4 } } }) as UnitModel;
    const units = [unit("network", [], 1), unit("api", ["network"], 0), unit("jobs", ["network"], 2), unit("late", ["network"], 0, "running"), unit("dns", [], 0)];
    expect(sparedBy("network", units)).toEqual(["api"]);
  });
});

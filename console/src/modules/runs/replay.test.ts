/** A run once more, at any time of it. */
import { describe, expect, it } from "vitest";

import { emptyModel } from "../../api/live/model";
import type { NumberedEvent } from "../../api/live/types";
import { modelAt } from "./Replay";

const at = (second: number) => `2026-01-01T10:00:${String(second).padStart(2, "0")}Z`;

const events: NumberedEvent[] = [
  { seq: 1, event: { event: "run", at: at(0), run: "R0001", status: "started" } },
  { seq: 2, event: { event: "diagnostic", at: at(2), level: "info", message: "programs are read" } },
  { seq: 3, event: { event: "plan", at: at(3), minutes: 1, layers: [[{ unit: "network", priority: 1, decision: "run", minutes: 1 }]] } },
  { seq: 4, event: { event: "unit", at: at(4), unit: "network", status: "running" } },
  { seq: 5, event: { event: "unit", at: at(8), unit: "network", status: "succeeded", seconds: 4 } },
];

const statusAt = (second: number) => modelAt(events, Date.parse(at(second)), emptyModel()).units.get("network")?.status;

describe("a replay", () => {
  it("knows the plan from its first moment, and nothing else of what comes", () => {
    expect(statusAt(0)).toBe("waiting");
    expect(modelAt(events, Date.parse(at(0)), emptyModel()).log).toEqual([]);
  });

  it("shows each unit as it was", () => {
    expect([statusAt(4), statusAt(7), statusAt(8)]).toEqual(["running", "running", "succeeded"]);
  });
});

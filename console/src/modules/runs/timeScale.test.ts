import { describe, expect, it } from "vitest";

import { emptyModel, noCounts } from "../../api/live/model";
import type { UnitModel } from "../../api/live/model";
import { duration, clock, relative } from "../../components/Time";
import { byKind, kindOf } from "../../components/Operations";
import { expectedStarts, scaleOf, secondsLeft, ticksOf } from "./timeScale";

const NOW = Date.parse("2026-11-17T14:10:00Z");
const unit = (name: string, some: Partial<UnitModel>): UnitModel => ({ name, layer: 0, needs: [], status: "waiting", resources: noCounts(), phases: [], ...some });

describe("times on the timeline", () => {
  const running = unit("a", { status: "running", started_at: "2026-11-17T14:09:30Z", usual_seconds: 60 });
  const waiting = unit("b", { needs: ["a"], usual_seconds: 120 });

  it("expects a unit when those that it needs usually end", () => {
    expect(expectedStarts([running, waiting], NOW).get("b")).toBe(NOW + 30_000);
    expect(secondsLeft(emptyModel(), [running, waiting], NOW)).toBe(150);
  });

  it("says nothing about the time left when nothing is known", () => {
    expect(secondsLeft(emptyModel(), [unit("c", {})], NOW)).toBeNull();
  });

  it("covers what is expected and has about six ticks", () => {
    const model = { ...emptyModel(), startedAt: "2026-11-17T14:00:00Z" };
    const scale = scaleOf(model, [running, waiting], NOW);
    expect(scale.at(NOW + 150_000)).toBeLessThanOrEqual(100);
    expect(scale.at(Date.parse("2026-11-17T14:00:00Z"))).toBe(0);
    expect(ticksOf(scale).length).toBeGreaterThan(2);
    expect(ticksOf(scale).length).toBeLessThan(9);
  });

  it("writes durations the way people say them", () => {
    expect([0.42, 9.6, 41, 90, 7325].map(duration)).toEqual(["0.4s", "9.6s", "41s", "1m 30s", "2h 02m"]);
    expect([41, 1241, 7325].map(clock)).toEqual(["0:41", "20:41", "2:02:05"]);
    expect(relative(NOW - 3 * 60_000, NOW)).toBe("3 minutes ago");
  });

  it("counts a replacement once", () => {
    expect(byKind({ "create-replacement": 2, "delete-replaced": 2, replace: 0, create: 1 })).toEqual({ replace: 2, create: 1 });
    expect(kindOf("read")).toBe("same");
  });
});

/** Where notifications lead. */
import { describe, expect, it } from "vitest";

import { badge, pageOf, shapeOf } from "./about";

const told = { id: "n1", kind: "run_failed", title: "t", text: "", created_at: "2026-01-01T00:00:00Z" };

describe("a notification", () => {
  it("leads to what awaits a decision before it leads to the run", () => {
    expect(pageOf({ ...told, approval: "a1", run: "r1", deployment: "D1" })).toBe("/approvals/a1");
    expect(pageOf({ ...told, run: "r1", deployment: "D1", environment: "dev" })).toBe("/runs/r1");
    expect(pageOf({ ...told, deployment: "D1", environment: "dev" })).toBe("/deployments/D1/dev");
    expect(pageOf(told)).toBeNull();
  });

  it("of a kind that is not known is shown as such", () => {
    expect(shapeOf("run_failed")).toBe("failed");
    expect(shapeOf("something_new")).toBe("unknown");
  });

  it("is counted as far as there is room", () => {
    expect([badge(3), badge(100, true), badge(4000)]).toEqual(["3", "100+", "999+"]);
  });
});

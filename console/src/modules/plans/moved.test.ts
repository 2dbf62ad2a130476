/** A plan that no longer says what would happen names what moved. */
import { describe, expect, it } from "vitest";

import type { Deployment } from "../../api/queries/deployments";
import type { Run } from "../../api/queries/runs";
import { sealOf } from "./moved";

const at = (minute: number) => `2026-01-01T10:${String(minute).padStart(2, "0")}:00Z`;

function run(number: string, minute: number, more: Partial<Run> = {}): Run {
  return { id: number, number, action: "deploy", deployment: "D1", environment: "dev", rehearsal: true, status: "ended", result: "succeeded", queued_at: at(minute), began_at: at(minute), ended_at: at(minute + 1), ...more } as Run;
}

const deployment = (minute: number) => ({ id: "D1", revision: 3, updated_at: at(minute) }) as Deployment;
const plan = run("R0002", 10, { action: "preview" });
const moved = (runs: Run[], saved: number) => sealOf(plan, deployment(saved), runs).flatMap((item) => (item.moved ? [item.name] : []));

describe("the seal of a plan", () => {
  it("holds while nothing was saved and nothing ran", () => {
    expect(moved([plan, run("R0001", 5)], 4)).toEqual([]);
  });

  it("breaks when the manifest was saved after planning began", () => {
    expect(moved([plan], 12)).toEqual(["Manifest"]);
  });

  it("breaks when something ran or still runs in the same environment", () => {
    expect(moved([run("R0003", 12), plan], 4)).toEqual(["Start state"]);
    expect(moved([run("R0003", 1, { status: "running", ended_at: null }), plan], 4)).toEqual(["Start state"]);
    expect(moved([run("R0003", 12, { environment: "prod" }), run("R0004", 12, { rehearsal: false }), plan], 4)).toEqual([]);
  });

  it("says when there is a newer plan", () => {
    expect(moved([run("R0003", 12, { action: "preview" }), plan], 4)).toEqual(["Newest plan"]);
  });
});

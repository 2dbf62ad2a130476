/** What the first page says that needs somebody. */
import { describe, expect, it } from "vitest";

import type { Run } from "../../api/queries/runs";
import { needsSomebody } from "./HomePage";

const run = (number: string, more: Partial<Run>): Run => ({ number, deployment: "D1", environment: "dev", action: "deploy", status: "ended", result: "succeeded", ...more }) as Run;

describe("what needs somebody", () => {
  it("is the newest run of an environment that failed, stopped half-way or waits, and no plan", () => {
    const runs = [
      run("R9", { action: "preview", result: "failed" }),
      run("R8", { result: "failed" }),
      run("R7", { result: "needs_attention" }),
      run("R6", { environment: "prod" }),
      run("R5", { environment: "prod", result: "failed" }),
      run("R4", { deployment: "D2", status: "paused", result: null }),
      run("R3", { deployment: "D3", result: "rolled_back" }),
      run("R2", { deployment: "D4", result: "interrupted" }),
    ];
    expect(needsSomebody(runs).map((one) => one.number)).toEqual(["R8", "R4", "R2"]);
  });
});

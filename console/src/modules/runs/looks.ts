/** How runs and units look: the word, the shape and the order of attention. */
import type { Run } from "../../api/queries/runs";
import type { UnitSnapshot } from "../../api/live/types";
import type { Shape } from "../../components/StatusShape";

export interface Look {
  shape: Shape;
  word: string;
}

export function runLook(run: Pick<Run, "status" | "result" | "wish" | "position" | "approval">, undoing = false): Look {
  if (run.status === "queued" && run.approval) return { shape: "person", word: "Waits for approval" };
  if (run.status === "queued") {
    return { shape: "waiting", word: run.position ? `Queued, ${run.position} before it` : "Queued" };
  }
  if (run.status === "paused") return { shape: "person", word: "Paused" };
  if (run.status === "ended") return resultLook(run.result);
  if (undoing) return { shape: "rolling", word: "Rolling back" };
  if (run.wish === "cancel") return { shape: "running", word: "Stopping" };
  if (run.wish === "pause") return { shape: "running", word: "Pausing" };
  return { shape: "running", word: "Running" };
}

function resultLook(result: string | null | undefined): Look {
  switch (result) {
    case "succeeded":
      return { shape: "ok", word: "Succeeded" };
    case "failed":
      return { shape: "failed", word: "Failed" };
    case "rolled_back":
      return { shape: "rolled", word: "Rolled back" };
    case "needs_attention":
      return { shape: "unknown", word: "Needs attention" };
    case "cancelled":
    case "interrupted":
      return { shape: "warning", word: result === "cancelled" ? "Cancelled" : "Interrupted" };
    default:
      return { shape: "unknown", word: result ?? "Ended" };
  }
}

export function unitLook(unit: Pick<UnitSnapshot, "status" | "attention">): Look {
  if (unit.attention) return { shape: "unknown", word: "needs attention" };
  switch (unit.status) {
    case "waiting":
      return { shape: "waiting", word: "waiting" };
    case "running":
      return { shape: "running", word: "running" };
    case "succeeded":
      return { shape: "ok", word: "succeeded" };
    case "skipped":
      return { shape: "same", word: "unchanged" };
    case "failed":
      return { shape: "failed", word: "failed" };
    case "not_started":
      return { shape: "waiting", word: "not started" };
    case "rolling_back":
      return { shape: "rolling", word: "rolling back" };
    case "rolled_back":
      return { shape: "rolled", word: "rolled back" };
  }
}

const ATTENTION = ["failed", "rolling_back", "running", "waiting", "not_started", "rolled_back", "succeeded", "skipped"];

/** Failed first, unchanged last. */
export function attention(unit: Pick<UnitSnapshot, "status" | "attention">): number {
  return unit.attention ? -1 : ATTENTION.indexOf(unit.status);
}

export function actionWord(action: string): string {
  return { deploy: "Deploy", destroy: "Destroy", preview: "Plan", refresh: "Refresh", rollback: "Roll back" }[action] ?? action;
}

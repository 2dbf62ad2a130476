/** A run as the live feed tells it: the snapshot, its events and the frames of the socket. */
import type { Schema } from "../client";

export type Run = Schema<"Run">;

export type UnitStatus =
  | "waiting"
  | "running"
  | "succeeded"
  | "skipped"
  | "failed"
  | "not_started"
  | "rolling_back"
  | "rolled_back";

export type ResourceStatus = "planned" | "started" | "done" | "failed";
export type LogLevel = "debug" | "info" | "warning" | "error";
export type Counts = Record<string, number>;

export interface ResourceCounts {
  total: number;
  started: number;
  done: number;
  failed: number;
  planned: number;
  by_op: Counts;
}

export interface UnitSnapshot {
  name: string;
  layer: number;
  needs: string[];
  needed_by?: string[];
  status: UnitStatus;
  decision?: string | null;
  reason?: string | null;
  message?: string | null;
  attention?: boolean;
  planned_minutes?: number | null;
  usual_seconds?: number | null;
  started_at?: string | null;
  ended_at?: string | null;
  seconds?: number | null;
  changes?: Counts;
  resources: ResourceCounts;
}

export interface CheckSnapshot {
  name: string;
  status: string;
  message?: string | null;
  seconds?: number | null;
}

export interface Cause {
  unit?: string | null;
  resource?: { type: string; name: string; urn: string } | null;
  message: string;
  at: string;
}

export interface RunDetail {
  run: Run;
  seq: number;
  server_time: string;
  requested_by_name?: string | null;
  planned_minutes?: number | null;
  usual_seconds?: number | null;
  attempts?: number;
  undoing: boolean;
  trigger?: string | null;
  message?: string | null;
  layers: string[][];
  units: UnitSnapshot[];
  checks: CheckSnapshot[];
  totals?: { warnings?: number; errors?: number };
  cause?: Cause | null;
  attention?: string[];
}

/** One property that a step changes; values are JSON, and never those of secrets. */
export interface PropertyRow {
  path: string;
  old?: string | null;
  new?: string | null;
  secret?: boolean;
  unknown?: boolean;
  replaces?: boolean;
}

export interface ResourceRow {
  urn: string;
  type: string;
  name: string;
  op: string;
  status: ResourceStatus;
  id?: string | null;
  started_at?: string | null;
  ended_at?: string | null;
  seconds?: number | null;
  properties?: PropertyRow[];
}

export interface UnitDetail {
  seq: number;
  unit: UnitSnapshot;
  resources: ResourceRow[];
  next?: number | null;
}

export interface LogLine {
  seq: number;
  at: string;
  unit?: string | null;
  level: LogLevel;
  message: string;
}

export interface LogPage {
  lines: LogLine[];
  first?: number | null;
  last?: number | null;
  more: boolean;
}

interface At {
  at: string;
}

export interface PlannedUnit {
  unit: string;
  priority: number;
  decision: string;
  reason?: string | null;
  minutes: number;
  needs?: string[];
}

export type RunEvent =
  | (At & { event: "run"; run: string; status: string; result?: string; message?: string; trigger?: string })
  | (At & { event: "plan"; layers: PlannedUnit[][]; minutes: number })
  | (At & { event: "layer"; layer: number; status: string; units: string[] })
  | (At & {
      event: "unit";
      unit: string;
      status: UnitStatus;
      message?: string;
      reason?: string;
      seconds?: number;
      changes?: Counts;
      attention?: boolean;
    })
  | (At & {
      event: "resource";
      unit: string;
      status: ResourceStatus;
      op: string;
      type: string;
      name: string;
      urn: string;
      id?: string;
      seconds?: number;
      properties?: PropertyRow[];
    })
  | (At & { event: "check"; check: string; status: string; message?: string; seconds?: number })
  | (At & { event: "diagnostic"; unit?: string; level: LogLevel; message: string });

export interface NumberedEvent {
  seq: number;
  kind?: string;
  event: RunEvent;
}

export type Frame =
  | { type: "snapshot"; seq: number; detail: RunDetail }
  | { type: "resumed"; seq: number; run: Run; server_time: string }
  | { type: "events"; items: NumberedEvent[] }
  | { type: "run"; run: Run }
  | { type: "gap"; from: number; to: number }
  | { type: "heartbeat"; seq: number; server_time: string }
  | { type: "complete"; seq: number; run: Run };

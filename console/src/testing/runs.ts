/** Runs that never were: believable events from a seed, and the snapshot that a server would give after some of them. */
import { apply, emptyModel } from "../api/live/model";
import type { NumberedEvent, Run, RunDetail, RunEvent, UnitSnapshot } from "../api/live/types";

/** Small, repeatable randomness. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state * 1664525 + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export interface Size {
  layers: number;
  width: number;
  resources: number;
}

const OPS = ["create", "update", "replace", "delete"];
const START = Date.parse("2026-11-17T14:02:00Z");

export function eventsOf(seed: number, size: Size = { layers: 3, width: 3, resources: 5 }): NumberedEvent[] {
  const next = random(seed);
  const events: RunEvent[] = [];
  let clock = START;
  const at = () => new Date((clock += Math.floor(next() * 900) + 50)).toISOString();
  const layers = Array.from({ length: size.layers }, (_, layer) =>
    Array.from({ length: 1 + Math.floor(next() * size.width) }, (_, index) => `unit-${layer}-${index}`),
  );
  events.push({ event: "run", at: at(), run: "R0001", status: "started" });
  events.push({
    event: "plan",
    at: at(),
    minutes: 3,
    layers: layers.map((layer, depth) =>
      layer.map((unit) => ({ unit, priority: 1, decision: "run", minutes: 1, needs: depth > 0 ? (layers[depth - 1] ?? []).slice(0, 2) : [] })),
    ),
  });
  const failing = next() < 0.4 ? layers.flat()[Math.floor(next() * layers.flat().length)] : undefined;
  let failed = false;
  const done: string[] = [];
  for (const unit of layers.flat()) {
    if (failed) {
      events.push({ event: "unit", at: at(), unit, status: "not_started" });
      continue;
    }
    if (next() < 0.2) {
      events.push({ event: "unit", at: at(), unit, status: "skipped", seconds: 0 });
      continue;
    }
    events.push({ event: "unit", at: at(), unit, status: "running", reason: "inputs changed" });
    const counts: Record<string, number> = {};
    const open: RunEvent[] = [];
    for (let index = 0; index < size.resources; index += 1) {
      const op = OPS[Math.floor(next() * OPS.length)] ?? "create";
      const step = { unit, op, type: "aws:ec2/vpc:Vpc", name: `r${index}`, urn: `urn:${unit}:${index}` };
      events.push({ event: "resource", at: at(), status: "started", ...step });
      const bad = unit === failing && index === size.resources - 1;
      open.push({ event: "resource", at: at(), status: bad ? "failed" : "done", seconds: 1.5, ...step });
      if (!bad) counts[op] = (counts[op] ?? 0) + 1;
      if (next() < 0.3) events.push({ event: "diagnostic", at: at(), unit, level: next() < 0.5 ? "info" : "warning", message: `r${index} waits` });
    }
    // Steps end in another order than they begin.
    events.push(...open.sort(() => next() - 0.5));
    if (unit === failing) {
      failed = true;
      events.push({ event: "diagnostic", at: at(), unit, level: "error", message: "the provider refused" });
      events.push({ event: "unit", at: at(), unit, status: "failed", message: "1 of its resources failed", seconds: 9, changes: counts });
    } else {
      done.push(unit);
      events.push({ event: "unit", at: at(), unit, status: "succeeded", seconds: 9, changes: counts });
    }
  }
  if (failed) {
    events.push({ event: "run", at: at(), run: "R0001", status: "undoing", trigger: "failed_unit" });
    for (const unit of done.reverse()) {
      events.push({ event: "unit", at: at(), unit, status: "rolling_back" });
      events.push({ event: "unit", at: at(), unit, status: "rolled_back", seconds: 4 });
    }
  } else {
    events.push({ event: "check", at: at(), check: "smoke", status: "running" });
    events.push({ event: "check", at: at(), check: "smoke", status: "passed", seconds: 1 });
  }
  events.push({ event: "run", at: at(), run: "R0001", status: "ended", result: failed ? "rolled_back" : "succeeded" });
  return events.map((event, index) => ({ seq: index + 1, event }));
}

export function runOf(events: NumberedEvent[], upTo: number = events.length): Run {
  const last = events[upTo - 1]?.event;
  const ended = last?.event === "run" && last.status === "ended";
  const self = "/api/v1/runs/0";
  return {
    id: "0",
    number: "R0001",
    deployment: "D1DEMO",
    environment: "dev",
    action: "deploy",
    rehearsal: true,
    status: ended ? "ended" : "running",
    result: ended ? (last.result ?? null) : null,
    requested_by: "somebody",
    queued_at: new Date(START).toISOString(),
    began_at: events[0]?.event.at ?? null,
    ended_at: ended ? last.at : null,
    last_seq: upTo,
    links: { self, events: `${self}/events`, cancel: `${self}/cancel`, deployment: "/api/v1/deployments/D1DEMO" },
  } as Run;
}

/** Everything up to an event, in the form of the wire. */
export function snapshotAt(events: NumberedEvent[], upTo: number): RunDetail {
  const model = emptyModel();
  const changed = new Set<string>();
  for (const event of events.slice(0, upTo)) apply(model, event, changed);
  const units = [...model.units.values()].map((unit): UnitSnapshot => structuredClone({ ...unit, phases: undefined }));
  return {
    run: runOf(events, upTo),
    seq: upTo,
    server_time: new Date(START).toISOString(),
    undoing: model.undoing,
    trigger: model.trigger,
    message: model.message,
    layers: model.layers,
    units,
    checks: structuredClone(model.checks),
    totals: { warnings: model.warnings, errors: model.errors },
    cause: model.cause ? structuredClone(model.cause) : null,
  };
}

/**
 * What a run looks like after its events, as values: snapshot and events in, model out, no clock and no network.
 *
 * Counts are of steps, not of resources, so that they can go on from a snapshot, which has no resources: a step that
 * ends knows by its duration whether it had begun.
 */
import type {
  Cause,
  CheckSnapshot,
  LogLine,
  NumberedEvent,
  ResourceCounts,
  ResourceRow,
  Run,
  RunDetail,
  RunEvent,
  UnitDetail,
  UnitSnapshot,
} from "./types";

/** A stretch of work on a unit, as the timeline draws it. */
export interface Phase {
  undo: boolean;
  from: string;
  to: string | null;
  outcome: UnitSnapshot["status"] | null;
}

export interface UnitModel extends UnitSnapshot {
  phases: Phase[];
}

export interface RunModel {
  run: Run | null;
  seq: number;
  requestedByName: string | null;
  usualSeconds: number | null;
  undoing: boolean;
  trigger: string | null;
  message: string | null;
  startedAt: string | null;
  endedAt: string | null;
  result: string | null;
  layers: string[][];
  units: Map<string, UnitModel>;
  checks: CheckSnapshot[];
  cause: Cause | null;
  warnings: number;
  errors: number;
  /** Resources by unit and URN, as far as they are known here. */
  rows: Map<string, Map<string, ResourceRow>>;
  log: LogLine[];
}

/** Lines kept in memory; the rest is on the server. */
export const LOG_LINES = 50_000;

const ENDED = new Set(["succeeded", "skipped", "failed", "not_started", "rolled_back"]);

export function emptyModel(): RunModel {
  return {
    run: null,
    seq: 0,
    requestedByName: null,
    usualSeconds: null,
    undoing: false,
    trigger: null,
    message: null,
    startedAt: null,
    endedAt: null,
    result: null,
    layers: [],
    units: new Map(),
    checks: [],
    cause: null,
    warnings: 0,
    errors: 0,
    rows: new Map(),
    log: [],
  };
}

export function noCounts(): ResourceCounts {
  return { total: 0, started: 0, done: 0, failed: 0, planned: 0, by_op: {} };
}

function newUnit(name: string): UnitModel {
  return { name, layer: 0, needs: [], status: "waiting", resources: noCounts(), phases: [] };
}

export function fromSnapshot(detail: RunDetail, before?: RunModel): RunModel {
  const model = emptyModel();
  const units = new Map(detail.units.map((unit) => [unit.name, { ...unit, phases: phasesOf(unit, before) }]));
  return {
    ...model,
    run: detail.run,
    seq: detail.seq,
    requestedByName: detail.requested_by_name ?? null,
    usualSeconds: detail.usual_seconds ?? null,
    undoing: detail.undoing,
    trigger: detail.trigger ?? null,
    message: detail.message ?? null,
    startedAt: detail.run.began_at ?? null,
    endedAt: detail.run.ended_at ?? null,
    result: detail.run.result ?? null,
    layers: detail.layers,
    units,
    checks: detail.checks,
    cause: detail.cause ?? null,
    warnings: detail.totals?.warnings ?? 0,
    errors: detail.totals?.errors ?? 0,
    // Rows and lines from before a gap are old: what is looked at is read again.
    rows: new Map(),
    log: before?.log.filter((line) => line.seq <= detail.seq) ?? [],
  };
}

function phasesOf(unit: UnitSnapshot, before?: RunModel): Phase[] {
  const undo = unit.status === "rolling_back" || unit.status === "rolled_back";
  const known = before?.units.get(unit.name)?.phases.filter((phase) => phase.to !== null) ?? [];
  if (!unit.started_at) return known;
  if (known.some((phase) => phase.from === unit.started_at)) return known;
  const outcome = ENDED.has(unit.status) ? unit.status : null;
  return [...known, { undo, from: unit.started_at, to: unit.ended_at ?? null, outcome }];
}

/** Applies one event that is the next one. Changes the model; says which parts have changed. */
export function apply(model: RunModel, numbered: NumberedEvent, changed: Set<string>): void {
  model.seq = numbered.seq;
  const event = numbered.event;
  switch (event.event) {
    case "run":
      runEvent(model, event);
      changed.add("run");
      return;
    case "plan":
      plan(model, event);
      changed.add("run");
      changed.add("units");
      for (const name of model.units.keys()) changed.add(`unit:${name}`);
      return;
    case "layer":
      return;
    case "unit":
      unitEvent(model, event);
      changed.add(`unit:${event.unit}`);
      changed.add("units");
      return;
    case "resource":
      resource(model, event);
      changed.add(`unit:${event.unit}`);
      changed.add(`rows:${event.unit}`);
      changed.add("totals");
      return;
    case "check":
      check(model, event);
      changed.add("run");
      return;
    case "diagnostic":
      diagnostic(model, event, numbered.seq);
      changed.add("log");
      return;
  }
}

type Event<Kind extends RunEvent["event"]> = Extract<RunEvent, { event: Kind }>;

function runEvent(model: RunModel, event: Event<"run">): void {
  if (event.status === "started" || event.status === "resumed") {
    model.startedAt ??= event.at;
    model.endedAt = null;
    model.result = null;
  }
  if (event.status === "undoing") {
    model.undoing = true;
    model.trigger = event.trigger ?? model.trigger;
  }
  if (event.status === "ended") {
    model.endedAt = event.at;
    model.result = event.result ?? null;
  }
  if (event.message) model.message = event.message;
}

function plan(model: RunModel, event: Event<"plan">): void {
  model.layers = event.layers.map((layer) => layer.map((unit) => unit.unit));
  event.layers.forEach((layer, index) => {
    for (const planned of layer) {
      const known = model.units.get(planned.unit) ?? newUnit(planned.unit);
      model.units.set(planned.unit, {
        ...known,
        layer: index,
        needs: planned.needs ?? known.needs,
        decision: planned.decision,
        reason: planned.reason ?? known.reason ?? null,
        planned_minutes: planned.minutes,
      });
    }
  });
}

function unitEvent(model: RunModel, event: Event<"unit">): void {
  const known = model.units.get(event.unit) ?? newUnit(event.unit);
  const next: UnitModel = { ...known, status: event.status, message: event.message ?? null };
  if (event.reason) next.reason = event.reason;
  if (event.attention) next.attention = true;
  const undo = event.status === "rolling_back";
  if (event.status === "running" || undo) {
    next.started_at = event.at;
    next.ended_at = null;
    next.seconds = null;
    next.phases = [...known.phases, { undo, from: event.at, to: null, outcome: null }];
  } else if (ENDED.has(event.status)) {
    next.ended_at = event.at;
    next.seconds = event.seconds ?? null;
    next.changes = event.changes ?? {};
    next.phases = known.phases.map((phase) =>
      phase.to === null ? { ...phase, to: event.at, outcome: event.status } : phase,
    );
    // Nothing is under way in a unit that ended.
    if (known.resources.started > 0) next.resources = { ...known.resources, started: 0 };
  }
  if (event.status === "failed") noteCause(model, { unit: event.unit, message: event.message ?? "failed", at: event.at });
  model.units.set(event.unit, next);
}

function noteCause(model: RunModel, cause: Cause): void {
  model.cause ??= cause;
}

function resource(model: RunModel, event: Event<"resource">): void {
  const known = model.units.get(event.unit) ?? newUnit(event.unit);
  model.units.set(event.unit, { ...known, resources: counted(known.resources, event) });
  let rows = model.rows.get(event.unit);
  if (!rows) {
    rows = new Map();
    model.rows.set(event.unit, rows);
  }
  const before = rows.get(event.urn);
  const began = event.status === "started" ? event.at : (before?.started_at ?? null);
  rows.set(event.urn, {
    urn: event.urn,
    type: event.type,
    name: event.name,
    op: event.op,
    status: event.status,
    id: event.id ?? before?.id ?? null,
    started_at: began,
    ended_at: event.status === "done" || event.status === "failed" ? event.at : null,
    seconds: event.seconds ?? null,
    properties: event.properties ?? before?.properties ?? [],
  });
  if (event.status === "failed") {
    const { type, name, urn } = event;
    noteCause(model, { unit: event.unit, resource: { type, name, urn }, message: "", at: event.at });
  }
}

function counted(counts: ResourceCounts, event: Event<"resource">): ResourceCounts {
  const next = { ...counts };
  const more = () => {
    next.by_op = { ...counts.by_op, [event.op]: (counts.by_op[event.op] ?? 0) + 1 };
  };
  switch (event.status) {
    case "planned":
      next.total += 1;
      next.planned += 1;
      more();
      break;
    case "started":
      next.total += 1;
      next.started += 1;
      break;
    case "done":
    case "failed":
      if (event.seconds === undefined || event.seconds === null) next.total += 1;
      else next.started = Math.max(0, next.started - 1);
      next[event.status] += 1;
      if (event.status === "done") more();
      break;
  }
  return next;
}

function check(model: RunModel, event: Event<"check">): void {
  const known = model.checks.find((one) => one.name === event.check);
  const next: CheckSnapshot = {
    name: event.check,
    status: event.status === "output" ? (known?.status ?? "running") : event.status,
    message: event.message ?? known?.message ?? null,
    seconds: event.seconds ?? null,
  };
  model.checks = known
    ? model.checks.map((one) => (one === known ? next : one))
    : [...model.checks, next];
}

function diagnostic(model: RunModel, event: Event<"diagnostic">, seq: number): void {
  const { at, level, message } = event;
  if (level === "warning") model.warnings += 1;
  if (level === "error") {
    model.errors += 1;
    const cause = model.cause;
    // The provider's words follow the resource that failed.
    if (!cause) noteCause(model, { unit: event.unit ?? null, message, at });
    else if (cause.message === "" && (cause.unit ?? null) === (event.unit ?? null)) model.cause = { ...cause, message };
  }
  model.log.push({ seq, at, unit: event.unit ?? null, level, message });
  if (model.log.length > LOG_LINES * 1.1) model.log = model.log.slice(-LOG_LINES);
}

/** Adds what was read of a unit's resources; what events told since is newer and stays. */
export function addRows(model: RunModel, unit: string, detail: UnitDetail): void {
  const told = model.rows.get(unit) ?? new Map<string, ResourceRow>();
  const rows = new Map<string, ResourceRow>();
  for (const row of detail.resources) {
    const newer = told.get(row.urn);
    // What a step changes is said once, when it begins: that may have been before this page was there.
    rows.set(row.urn, newer ? { ...newer, properties: newer.properties?.length ? newer.properties : (row.properties ?? []) } : row);
  }
  for (const [urn, row] of told) rows.set(urn, row);
  model.rows.set(unit, rows);
}

/** Adds lines that were read, in order and without doubles. */
export function addLines(model: RunModel, lines: LogLine[]): void {
  const known = new Set(model.log.map((line) => line.seq));
  const added = lines.filter((line) => !known.has(line.seq));
  if (added.length === 0) return;
  model.log = [...added, ...model.log].sort((a, b) => a.seq - b.seq).slice(-LOG_LINES);
}

export interface Totals {
  units: number;
  ended: number;
  done: number;
  total: number;
  failed: number;
  byOp: Record<string, number>;
}

/** Counts over all units, as the header shows them. */
export function totalsOf(model: RunModel): Totals {
  const totals: Totals = { units: model.units.size, ended: 0, done: 0, total: 0, failed: 0, byOp: {} };
  for (const unit of model.units.values()) {
    // A unit that the run never came to is over and not done.
    if (isOver(unit) && unit.status !== "not_started") totals.ended += 1;
    totals.failed += unit.resources.failed;
    // What a unit says at its end leaves out what the engine only keeps for itself, such as the stack.
    const said = unit.changes && Object.keys(unit.changes).length > 0 ? unit.changes : null;
    const applied = said ? changed(said) : unit.resources.done + unit.resources.planned;
    totals.done += applied;
    totals.total += said ? applied : unit.resources.total;
    for (const [op, count] of Object.entries(said ?? unit.resources.by_op)) totals.byOp[op] = (totals.byOp[op] ?? 0) + count;
  }
  return totals;
}

function changed(counts: Record<string, number>): number {
  return Object.entries(counts).reduce((sum, [op, count]) => (op === "same" || op === "read" ? sum : sum + count), 0);
}

export function isOver(unit: UnitSnapshot): boolean {
  return ENDED.has(unit.status);
}

/**
 * A run on screen: a model outside of React that events change many times a second and views read once a frame.
 *
 * Events are applied in the order of their numbers, whatever order they come in: older ones are dropped, later ones
 * wait for those before them, and what never comes is replaced by a snapshot.
 */
import { addLines, addRows, apply, emptyModel, fromSnapshot } from "./model";
import type { RunModel, UnitModel } from "./model";
import type { LogLine, NumberedEvent, Run, RunDetail, UnitDetail } from "./types";

type Listener = () => void;
export type Freshness = "connecting" | "live" | "reconnecting" | "paused" | "complete" | "replay";

/** Parts that are drawn in one frame: how units stand, then the resources of the one that is looked at, then what was said. */
const LANES = 3;
function laneOf(part: string): number {
  if (part === "log") return 2;
  return part.startsWith("rows:") ? 1 : 0;
}

/** Where notifications are kept together: a frame, or a second in a hidden tab. */
export type Schedule = (flush: () => void) => void;

export const perFrame: Schedule = (flush) => {
  if (document.hidden) setTimeout(flush, 1000);
  else requestAnimationFrame(flush);
};

export class RunStore {
  model: RunModel = emptyModel();
  freshness: Freshness = "connecting";
  /** Server time minus ours, in milliseconds. */
  clockOffset = 0;
  lastHeard = 0;
  /** When an event last came, by our clock. */
  lastEvent = 0;
  #waiting = new Map<number, NumberedEvent>();
  #changed = new Set<string>();
  #scheduled = false;
  #lane = 0;
  #listeners = new Map<string, Set<Listener>>();
  #versions = new Map<string, number>();
  #schedule: Schedule;

  constructor(schedule: Schedule = perFrame) {
    this.#schedule = schedule;
  }

  /** Hears of changes of one part: `run`, `units`, `totals`, `log`, `unit:<name>`, `rows:<name>` or `freshness`. */
  subscribe = (part: string, listener: Listener): Listener => {
    let listeners = this.#listeners.get(part);
    if (!listeners) {
      listeners = new Set();
      this.#listeners.set(part, listeners);
    }
    listeners.add(listener);
    const all = listeners;
    return () => all.delete(listener);
  };

  version(part: string): number {
    return this.#versions.get(part) ?? 0;
  }

  unit(name: string): UnitModel | undefined {
    return this.model.units.get(name);
  }

  snapshot(detail: RunDetail): void {
    if (this.model.run && detail.seq < this.model.seq) return;
    this.model = fromSnapshot(detail, this.model.run ? this.model : undefined);
    this.setServerTime(detail.server_time);
    for (const seq of this.#waiting.keys()) if (seq <= detail.seq) this.#waiting.delete(seq);
    this.#everything();
    this.#drain();
  }

  setRun(run: Run): void {
    this.model.run = run;
    this.model.startedAt ??= run.began_at ?? null;
    this.#note("run");
  }

  /** Whether something is missing between what is known and what came. */
  events(items: NumberedEvent[]): boolean {
    this.lastEvent = Date.now();
    for (const item of items) {
      if (item.seq === this.model.seq + 1) {
        apply(this.model, item, this.#changed);
        this.#drain();
      } else if (item.seq > this.model.seq) {
        this.#waiting.set(item.seq, item);
      }
    }
    this.#plan();
    return this.#waiting.size > 0;
  }

  rows(unit: string, detail: UnitDetail): void {
    addRows(this.model, unit, detail);
    this.#note(`rows:${unit}`);
  }

  lines(lines: LogLine[]): void {
    addLines(this.model, lines);
    this.#note("log");
  }

  setFreshness(freshness: Freshness): void {
    if (this.freshness === freshness) return;
    this.freshness = freshness;
    this.#note("freshness");
  }

  setServerTime(text: string, now: number = Date.now()): void {
    this.clockOffset = Date.parse(text) - now;
    this.lastHeard = now;
  }

  /** Replaces everything, for a replay. */
  replace(model: RunModel): void {
    this.model = model;
    this.#waiting.clear();
    this.#everything();
  }

  now(): number {
    return Date.now() + this.clockOffset;
  }

  #drain(): void {
    for (;;) {
      const next = this.#waiting.get(this.model.seq + 1);
      if (!next) break;
      this.#waiting.delete(next.seq);
      apply(this.model, next, this.#changed);
    }
    this.#plan();
  }

  #everything(): void {
    for (const part of ["run", "units", "totals", "log"]) this.#changed.add(part);
    for (const part of this.#listeners.keys()) this.#changed.add(part);
    for (const name of this.model.units.keys()) this.#changed.add(`unit:${name}`);
    this.#plan();
  }

  #note(part: string): void {
    this.#changed.add(part);
    this.#plan();
  }

  #plan(): void {
    if (this.#scheduled || this.#changed.size === 0) return;
    this.#scheduled = true;
    this.#schedule(() => this.#next());
  }

  /**
   * One lane in each frame, in turn: a busy run changes everything on the page at once, and three short frames keep up with a
   * pointer where a long one does not.
   */
  #next(): void {
    this.#scheduled = false;
    for (let step = 0; step < LANES; step += 1) {
      const lane = (this.#lane + step) % LANES;
      const due = [...this.#changed].filter((part) => laneOf(part) === lane);
      if (due.length === 0) continue;
      this.#lane = (lane + 1) % LANES;
      this.#tell(due);
      break;
    }
    this.#plan();
  }

  #tell(changed: string[]): void {
    for (const part of changed) this.#changed.delete(part);
    for (const part of changed) this.#versions.set(part, this.version(part) + 1);
    for (const part of changed) for (const listener of this.#listeners.get(part) ?? []) listener();
  }
}

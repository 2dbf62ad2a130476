/** From times to places on the timeline. */
import type { RunModel, UnitModel } from "../../api/live/model";
import { isOver } from "../../api/live/model";

export interface Scale {
  from: number;
  to: number;
  /** In percent of the width. */
  at: (time: number) => number;
}

const SHORTEST_MS = 20_000;
/** A little room after now, so that the line does not stick to the edge. */
const ROOM = 1.12;

export function scaleOf(model: RunModel, units: UnitModel[], now: number): Scale {
  const first = model.startedAt ?? model.run?.began_at ?? model.run?.queued_at;
  const from = first ? Date.parse(first) : now;
  let to = model.endedAt ? Date.parse(model.endedAt) : now;
  if (!model.endedAt) {
    for (const [name, start] of expectedStarts(units, now)) {
      const usual = units.find((unit) => unit.name === name)?.usual_seconds;
      if (usual) to = Math.max(to, start + usual * 1000);
    }
    for (const unit of units) {
      if (!isOver(unit) && unit.started_at && unit.usual_seconds) {
        to = Math.max(to, Date.parse(unit.started_at) + unit.usual_seconds * 1000);
      }
    }
  }
  const length = Math.max(SHORTEST_MS, (to - from) * (model.endedAt ? 1.06 : ROOM));
  return { from, to: from + length, at: (time) => clamp(((time - from) / length) * 100) };
}

function clamp(percent: number): number {
  return Math.min(100, Math.max(0, percent));
}

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400];

/** Round times, about six of them, or as many as there is room for. */
export function ticksOf(scale: Scale, most = 7): number[] {
  const span = (scale.to - scale.from) / 1000;
  const step = (STEPS_S.find((one) => span / one <= most) ?? 86_400) * 1000;
  const ticks: number[] = [];
  for (let tick = Math.ceil(scale.from / step) * step; tick < scale.to; tick += step) ticks.push(tick);
  return ticks;
}

/** When units that wait may begin, if everything takes as long as usual. Units come in the order of the plan. */
export function expectedStarts(units: UnitModel[], now: number): Map<string, number> {
  const ends = new Map<string, number>();
  const starts = new Map<string, number>();
  for (const unit of units) {
    if (isOver(unit)) {
      ends.set(unit.name, 0);
      continue;
    }
    const usual = (unit.usual_seconds ?? 0) * 1000;
    if (unit.status !== "waiting") {
      const begun = unit.started_at ? Date.parse(unit.started_at) : now;
      ends.set(unit.name, Math.max(now, begun + usual));
      continue;
    }
    const start = Math.max(now, ...unit.needs.map((need) => ends.get(need) ?? 0));
    starts.set(unit.name, start);
    ends.set(unit.name, start + usual);
  }
  return starts;
}

/** Seconds until the end, if everything takes as long as usual; nothing if that is not known. */
export function secondsLeft(model: RunModel, units: UnitModel[], now: number): number | null {
  const open = units.filter((unit) => !isOver(unit));
  if (open.length === 0 || open.some((unit) => unit.usual_seconds === null || unit.usual_seconds === undefined)) {
    if (!model.usualSeconds || !model.startedAt) return null;
    return Math.max(0, model.usualSeconds - (now - Date.parse(model.startedAt)) / 1000);
  }
  let last = now;
  const starts = expectedStarts(units, now);
  for (const unit of open) {
    const begun = starts.get(unit.name) ?? (unit.started_at ? Date.parse(unit.started_at) : now);
    last = Math.max(last, begun + (unit.usual_seconds ?? 0) * 1000);
  }
  return (last - now) / 1000;
}

/**
 * Units and their time in one scroll container, so that rows and bars cannot drift apart. Only rows that can be seen
 * are drawn. The order does not change under the pointer.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight } from "lucide-react";
import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { RefObject } from "react";

import type { RunStore } from "../../api/live/store";
import type { Phase, UnitModel } from "../../api/live/model";
import { isOver } from "../../api/live/model";
import { Segmented } from "../../components/Choice";
import { Counts } from "../../components/Operations";
import { StatusShape } from "../../components/StatusShape";
import type { Shape } from "../../components/StatusShape";
import { duration, timeOfDay, useNow } from "../../components/Time";
import { attention, unitLook } from "./looks";
import { expectedStarts, scaleOf, ticksOf } from "./timeScale";
import type { Scale } from "./timeScale";
import { useUnit, useUnits } from "./useRun";

export type Order = "layer" | "duration" | "attention";
export type Show = "all" | "active" | "changed" | "failed";

const ROW = 24;
/** The axis stays on top of what scrolls, and moves every row down by its height. */
const AXIS = 22;
/** What a time needs beside the next one, in pixels. */
const TICK = 68;

interface Props {
  store: RunStore;
  selected: string | undefined;
  onSelect: (unit: string) => void;
  order: Order;
  show: Show;
  find: string;
  onOrder: (order: Order) => void;
  onShow: (show: Show) => void;
  onFind: (text: string) => void;
}

type Row = { kind: "group"; layer: number; units: UnitModel[]; open: boolean } | { kind: "unit"; name: string };

/** A run that fits on the screen is shown whole. */
const FOLDS_FROM = 24;

/** Nothing of it moves any more, and nothing of it went wrong. */
function isSettled(unit: UnitModel): boolean {
  return (unit.status === "succeeded" || unit.status === "skipped") && !unit.attention;
}

export function isChanged(unit: UnitModel): boolean {
  const counts = unit.changes ?? unit.resources.by_op;
  return Object.entries(counts).some(([op, count]) => op !== "same" && count > 0);
}

export function isActive(unit: UnitModel): boolean {
  return unit.status === "running" || unit.status === "rolling_back";
}

export function isFailed(unit: UnitModel): boolean {
  return unit.status === "failed" || Boolean(unit.attention);
}

export function shownUnits(units: UnitModel[], show: Show, find: string): UnitModel[] {
  const wanted = find.toLowerCase();
  return units.filter((unit) => {
    if (wanted && !unit.name.toLowerCase().includes(wanted)) return false;
    if (show === "active") return isActive(unit);
    if (show === "changed") return isChanged(unit);
    if (show === "failed") return isFailed(unit);
    return true;
  });
}

/** Layers that are done fold to one line; those that run, failed or are unknown never do so by themselves. */
export function rowsOf(units: UnitModel[], order: Order, toggled: ReadonlyMap<number, boolean> = new Map(), selected?: string): Row[] {
  const unitRow = (unit: UnitModel): Row => ({ kind: "unit", name: unit.name });
  if (order === "duration") return [...units].sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0)).map(unitRow);
  if (order === "attention") return [...units].sort((a, b) => attention(a) - attention(b)).map(unitRow);
  const rows: Row[] = [];
  const layers = new Map<number, UnitModel[]>();
  for (const unit of units) {
    const own = layers.get(unit.layer);
    if (own) own.push(unit);
    else layers.set(unit.layer, [unit]);
  }
  for (const [layer, own] of [...layers].sort(([a], [b]) => a - b)) {
    const folds = units.length > FOLDS_FROM && own.every(isSettled) && !own.some((unit) => unit.name === selected);
    const open = toggled.get(layer) ?? !folds;
    rows.push({ kind: "group", layer, units: own, open }, ...(open ? own.map(unitRow) : []));
  }
  return rows;
}

export function Timeline({ store, selected, onSelect, order, show, find, onOrder, onShow, onFind }: Props) {
  const units = useUnits(store);
  const scroller = useRef<HTMLDivElement>(null);
  const filter = useRef<HTMLInputElement>(null);
  const [held, setHeld] = useState<Row[] | null>(null);
  const [toggled, setToggled] = useState<ReadonlyMap<number, boolean>>(new Map());
  const fresh = useMemo(() => rowsOf(shownUnits(units, show, find), order, toggled, selected), [units, show, find, order, toggled, selected]);
  // Rows stay where they are while somebody points at them; groups show what is true all the same.
  const key = (row: Row) => (row.kind === "group" ? `layer ${row.layer}` : row.name);
  const moved = held !== null && held.map(key).join() !== fresh.map(key).join();
  const rows = held !== null && held.length === fresh.length && order !== "layer" ? held : fresh;
  useEffect(() => setHeld(null), [order, show, find]);

  const now = useNow() + store.clockOffset;
  const model = store.model;
  const scale = useMemo(() => scaleOf(model, units, now), [model, units, now]);
  const starts = useMemo(() => expectedStarts(units, now), [units, now]);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 6, scrollPaddingEnd: AXIS });
  const at = rows.findIndex((row) => row.kind === "unit" && row.name === selected);
  useEffect(() => {
    if (at >= 0) virtual.scrollToIndex(at, { align: "auto" });
  }, [at, virtual]);
  useEffect(() => {
    const focus = () => filter.current?.focus();
    window.addEventListener("nimbus:filter", focus);
    return () => window.removeEventListener("nimbus:filter", focus);
  }, []);
  const room = useRoomFor(scroller);
  const ticks = ticksOf(scale, Math.max(1, Math.min(7, Math.floor(room / TICK))));
  const count = (test: (unit: UnitModel) => boolean) => units.filter(test).length;
  const over = Boolean(store.model.endedAt);
  return (
    <section className="tl" id="timeline" aria-label="Timeline" tabIndex={-1}>
      <div className="tl-bar">
        <h2 className="b">Timeline</h2>
        <Segmented
          label="Order"
          value={order}
          options={[
            { value: "layer", label: "By layer" },
            { value: "duration", label: "By duration" },
            { value: "attention", label: "By attention" },
          ]}
          onChange={onOrder}
        />
        <input
          ref={filter}
          className="input sm tl-find"
          type="search"
          placeholder="Filter units"
          aria-label="Filter units"
          value={find}
          onChange={(event) => onFind(event.target.value)}
        />
        {moved && order !== "layer" ? (
          <button type="button" className="tag run" onClick={() => setHeld(null)}>
            rows moved, sort again
          </button>
        ) : null}
        <span className="grow" />
        <Segmented
          label="Show"
          value={show}
          options={[
            { value: "all", label: "All", count: units.length },
            { value: "active", label: "Active", count: count(isActive) },
            { value: "changed", label: "Changed", count: count(isChanged) },
            { value: "failed", label: "Failed", count: count(isFailed) },
          ]}
          onChange={onShow}
        />
      </div>
      <div
        className="tl-scroll"
        ref={scroller}
        tabIndex={0}
        role="group"
        aria-label="Units over time"
        onPointerEnter={() => setHeld(fresh)}
        onPointerLeave={() => setHeld(null)}
      >
        <Axis scale={scale} ticks={ticks} now={now} over={over} room={room} />
        <div className="tl-body" style={{ height: Math.max(virtual.getTotalSize(), 1) }}>
          <div className="tl-lines" aria-hidden>
            {ticks.map((tick) => (
              <i key={tick} style={{ left: `${scale.at(tick)}%` }} />
            ))}
            {over ? null : <i className="now" style={{ left: `${scale.at(now)}%` }} />}
          </div>
          <ul aria-label="Units">
            {virtual.getVirtualItems().map((item) => {
              const row = rows[item.index];
              if (!row) return null;
              const top = item.start;
              return row.kind === "group" ? (
                <GroupRow
                  key={key(row)}
                  layer={row.layer}
                  units={row.units.map((unit) => store.unit(unit.name) ?? unit)}
                  open={row.open}
                  onToggle={() => setToggled(new Map(toggled).set(row.layer, !row.open))}
                  scale={scale}
                  now={now}
                  top={top}
                />
              ) : (
                <UnitRow
                  key={row.name}
                  store={store}
                  name={row.name}
                  scale={scale}
                  now={now}
                  expected={starts.get(row.name)}
                  selected={row.name === selected}
                  onSelect={onSelect}
                  top={top}
                />
              );
            })}
          </ul>
          {rows.length === 0 ? (
            <p className="mute tl-empty">
              {units.length === 0 ? "Units appear with the plan." : "No unit is like that."}
              {find || show !== "all" ? (
                <button
                  type="button"
                  className="link"
                  onClick={() => {
                    onFind("");
                    onShow("all");
                  }}
                >
                  {" "}
                  Clear the filter
                </button>
              ) : null}
            </p>
          ) : null}
        </div>
      </div>
      <div className="tl-keys" aria-hidden>
        <span><kbd>J</kbd> <kbd>K</kbd> move</span>
        <span><kbd>↵</kbd> open unit</span>
        <span><kbd>F</kbd> first failure</span>
        <span><kbd>N</kbd> back to now</span>
        <span><kbd>/</kbd> filter</span>
        <span><kbd>?</kbd> all keys</span>
      </div>
    </section>
  );
}

/** How wide the part of the timeline with the bars is. */
function useRoomFor(scroller: RefObject<HTMLDivElement | null>): number {
  const [room, setRoom] = useState(600);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () => setRoom(element.querySelector<HTMLElement>(".tl-axis-in")?.clientWidth ?? 600);
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [scroller]);
  return room;
}

interface AxisProps {
  scale: Scale;
  ticks: number[];
  now: number;
  over: boolean;
  room: number;
}

function Axis({ scale, ticks, now, over, room }: AxisProps) {
  return (
    <div className="tl-axis" aria-hidden>
      <div className="tl-axis-in">
        {ticks
          .filter((tick) => over || (Math.abs(scale.at(tick) - scale.at(now)) / 100) * room > TICK - 8)
          .map((tick) => (
            <span key={tick} className="num" style={{ left: `${scale.at(tick)}%` }}>
              {scale.to - scale.from < 20 * 60_000 ? timeOfDay(tick) : timeOfDay(tick).slice(0, 5)}
            </span>
          ))}
        {over ? null : (
          <b className="num" style={{ left: `${scale.at(now)}%` }}>
            {timeOfDay(now)}
          </b>
        )}
      </div>
    </div>
  );
}

interface GroupProps {
  layer: number;
  units: UnitModel[];
  open: boolean;
  onToggle: () => void;
  scale: Scale;
  now: number;
  top: number;
}

/** How a whole layer stands. */
function groupShape(units: UnitModel[]): Shape {
  if (units.some(isFailed)) return "failed";
  if (units.some(isActive)) return unitLook(units.find(isActive) ?? { status: "running" }).shape;
  if (units.every((unit) => unit.status === "skipped")) return "same";
  if (units.some((unit) => unit.status === "rolled_back")) return "rolled";
  return units.every(isSettled) ? "ok" : "waiting";
}

function GroupRow({ layer, units, open, onToggle, scale, now, top }: GroupProps) {
  const begun = units.flatMap((unit) => unit.phases.map((phase) => Date.parse(phase.from)));
  const ended = units.flatMap((unit) => unit.phases.map((phase) => (phase.to ? Date.parse(phase.to) : now)));
  const done = units.filter((unit) => isOver(unit) && unit.status !== "not_started").length;
  const same = units.every((unit) => unit.status === "skipped");
  const [from, to] = [Math.min(...begun), Math.max(...ended)];
  const Icon = open ? ChevronDown : ChevronRight;
  return (
    <li className="tr grp-row" style={{ top }}>
      <button type="button" className="nm" aria-expanded={open} onClick={onToggle}>
        <Icon className="s mute" aria-hidden />
        <StatusShape shape={groupShape(units)} />
        <span className="b">Layer {layer + 1}</span>
      </button>
      <span className="pr num">{same ? `${units.length} unchanged` : `${done} of ${units.length}`}</span>
      <span className="bars" aria-hidden>
        {begun.length > 0 ? (
          <>
            <i className="bar grp-bar" style={{ left: `${scale.at(from)}%`, width: `${Math.max(0.3, scale.at(to) - scale.at(from))}%` }} />
            {!open && scale.at(to) < 80 ? (
              <span className="lb" style={{ left: `${scale.at(to)}%` }}>
                {duration(Math.round((to - from) / 1000))}
              </span>
            ) : null}
          </>
        ) : null}
      </span>
    </li>
  );
}

interface UnitProps {
  store: RunStore;
  name: string;
  scale: Scale;
  now: number;
  expected: number | undefined;
  selected: boolean;
  onSelect: (unit: string) => void;
  top: number;
}

const UnitRow = memo(function UnitRow({ store, name, scale, now, expected, selected, onSelect, top }: UnitProps) {
  const unit = useUnit(store, name);
  if (!unit) return null;
  const look = unitLook(unit);
  const { done, failed, total } = unit.resources;
  return (
    <li className={selected ? "tr sel" : "tr"} style={{ top }}>
      <button type="button" className="nm" onClick={() => onSelect(name)} aria-current={selected ? "true" : undefined}>
        <StatusShape shape={look.shape} label={look.word} />
        <span className="trunc">{name}</span>
      </button>
      <span className="pr num">
        {unit.status === "skipped" ? (
          <span className="mute">unchanged</span>
        ) : (
          <>
            <Counts counts={isOver(unit) ? (unit.changes ?? {}) : unit.resources.by_op} same={false} none={unit.status === "succeeded" ? "no changes" : ""} />
            {isActive(unit) && total > 0 ? <span>{`${done + failed}/${total}`}</span> : null}
          </>
        )}
      </span>
      <Bars unit={unit} scale={scale} now={now} expected={expected} />
    </li>
  );
});

function Bars({ unit, scale, now, expected }: { unit: UnitModel; scale: Scale; now: number; expected: number | undefined }) {
  const usual = unit.usual_seconds ?? null;
  const last = unit.phases.at(-1);
  if (unit.status === "skipped" || (unit.phases.length === 0 && isOver(unit))) {
    const at = unit.ended_at ? scale.at(Date.parse(unit.ended_at)) : 0;
    return (
      <span className="bars" aria-hidden>
        <span className="mark" style={{ left: `${at}%` }}>
          <StatusShape shape={unitLook(unit).shape} />
        </span>
      </span>
    );
  }
  const rest = last && last.to === null && usual && !last.undo ? Date.parse(last.from) + usual * 1000 : null;
  const label = last ? labelOf(unit, last, usual) : null;
  // A label stands after its bar, or before it; a bar over the whole width has room for neither.
  const begun = scale.at(Date.parse(unit.phases[0]?.from ?? ""));
  const labelAt = last ? scale.at(Math.max(rest ?? 0, last.to ? Date.parse(last.to) : now)) : 0;
  return (
    <span className="bars" aria-hidden>
      {unit.phases.map((phase) => (
        <Bar key={phase.from} phase={phase} unit={unit} scale={scale} now={now} />
      ))}
      {rest && rest > now ? (
        <i className="bar rest" style={{ left: `${scale.at(now)}%`, width: `${scale.at(rest) - scale.at(now)}%` }} />
      ) : null}
      {unit.status === "waiting" && expected !== undefined && usual ? (
        <i className="bar exp" style={{ left: `${scale.at(expected)}%`, width: `${Math.max(0.6, scale.at(expected + usual * 1000) - scale.at(expected))}%` }} />
      ) : null}
      {label && (labelAt <= 78 || begun > 20) ? (
        <span className={labelAt > 78 ? "lb left" : "lb"} style={labelAt > 78 ? { right: `${100 - begun}%` } : { left: `${labelAt}%`, maxWidth: `${100 - labelAt}%` }}>
          {label}
        </span>
      ) : null}
    </span>
  );
}

function labelOf(unit: UnitModel, phase: Phase, usual: number | null): string | null {
  if (unit.message && (unit.status === "failed" || unit.attention)) return unit.message.split("\n")[0] ?? null;
  if (phase.to === null) return usual && !phase.undo ? `usual ${duration(usual)}` : null;
  if (unit.status === "rolled_back") return "rolled back";
  return unit.seconds && unit.seconds > 0 ? duration(unit.seconds) : null;
}

function Bar({ phase, unit, scale, now }: { phase: Phase; unit: UnitModel; scale: Scale; now: number }) {
  const from = scale.at(Date.parse(phase.from));
  const to = scale.at(phase.to ? Date.parse(phase.to) : now);
  const last = unit.phases.at(-1) === phase;
  let look = "ok";
  if (phase.undo) look = "roll";
  else if (phase.to === null) look = "run";
  else if (phase.outcome === "failed" || (last && unit.status === "failed")) look = "bad";
  return <i className={`bar ${look}`} style={{ left: `${from}%`, width: `${Math.max(0.3, to - from)}%` }} />;
}

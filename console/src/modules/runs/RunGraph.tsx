/** Which unit needs which, and how far each has come. Cards for a few, dots for many, above that the list. */
import { Maximize2, Minus, Plus } from "lucide-react";
import { memo, useLayoutEffect, useMemo, useRef, useState } from "react";

import type { RunStore } from "../../api/live/store";
import type { UnitModel } from "../../api/live/model";
import { isOver } from "../../api/live/model";
import { IconButton } from "../../components/Button";
import { Counts } from "../../components/Operations";
import { StatusShape } from "../../components/StatusShape";
import { duration, useNow } from "../../components/Time";
import { DOT, NODE, criticalPath, layoutGraph } from "./graphLayout";
import type { PlacedEdge } from "./graphLayout";
import { unitLook } from "./looks";
import type { Look } from "./looks";
import { cellClass, progressOf } from "./UnitStrip";
import { usePart, useUnit, useUnits } from "./useRun";

const CARDS = 40;
const DOTS = 300;
const PADDING = 18;
const SHORTEST = 130;
/** Room for the words and tools below the graph. */
const LEGEND = 24;
const TALLEST = 280;
/** Smaller ones are not told apart: the rest is a matter of scrolling. */
const SMALLEST_DOT = 0.5;

interface Props {
  store: RunStore;
  selected: string | undefined;
  onSelect: (unit: string) => void;
}

export function RunGraph({ store, selected, onSelect }: Props) {
  const version = usePart(store, "run");
  const units = useUnits(store);
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState({ width: 1000, height: 200 });
  const [zoom, setZoom] = useState(1);
  const [begun] = useState(() => performance.now());
  const drawn = units.length > 0;
  // For whoever measures: from the first render to the first picture with units in it.
  useLayoutEffect(() => {
    if (drawn) performance.measure("nimbus.graph", { start: begun });
  }, [drawn, begun]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setRoom({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const layers = store.model.layers;
  const shape = layers.map((layer) => layer.join()).join("|");
  const dots = units.length > CARDS;
  const apart = dots ? dotsApart(layers, room.width) : 0;
  const layout = useMemo(() => {
    void version;
    void shape;
    return layoutGraph({ layers, needs: (name) => store.unit(name)?.needs ?? [], size: apart ? { ...DOT, gapX: apart } : NODE });
  }, [store, layers, shape, version, apart]);
  const critical = useMemo(
    () => {
      // Statuses decide; those of the store are the same as those of the list.
      void units;
      return criticalPath(
        layers,
        (name) => store.unit(name)?.needs ?? [],
        (name) => costOf(store.unit(name)),
      );
    },
    [store, layers, units],
  );
  const lines = useMemo(() => {
    void units;
    return linesOf(layout.edges, critical, (name) => store.unit(name));
  }, [layout, critical, units, store]);
  if (units.length > DOTS) {
    return (
      <section className="dag list-only" aria-label="Dependency graph">
        <p className="mute">{units.length} units are too many to draw. The list below has them all, with what each one needs.</p>
      </section>
    );
  }
  const fit = Math.min(1, (room.width - PADDING * 2) / Math.max(1, layout.width), (room.height - LEGEND - PADDING * 2) / Math.max(1, layout.height));
  const scale = Math.max(dots ? SMALLEST_DOT : 0.55, fit) * zoom;
  const size = { width: layout.width * scale, height: layout.height * scale };
  const left = Math.max(PADDING, (room.width - size.width) / 2);
  const top = Math.max(PADDING, (room.height - LEGEND - size.height) / 2);
  return (
    <section className="dag" aria-label="Dependency graph" style={{ height: Math.min(TALLEST, Math.max(SHORTEST, layout.height + LEGEND + PADDING * 2)) }}>
      <a href="#timeline" className="btn sm skip-graph">
        To the table with the same units
      </a>
      <div className="dag-scroll" ref={box} tabIndex={0} role="group" aria-label="Graph, scrolls">
        <div style={{ width: left * 2 + size.width, height: top * 2 + size.height + LEGEND, position: "relative" }}>
          <div className="dag-canvas" style={{ left, top, width: layout.width, height: layout.height, transform: `scale(${scale})` }}>
            <svg className="e" width={layout.width} height={layout.height} aria-hidden>
              <path d={lines.begun} fill="none" stroke="var(--control)" />
              <path d={lines.waiting} fill="none" stroke="var(--control)" strokeDasharray="3 3" />
              <path d={lines.criticalBegun} fill="none" stroke="var(--ink)" strokeWidth={1.9} />
              <path d={lines.criticalWaiting} fill="none" stroke="var(--ink)" strokeWidth={1.9} strokeDasharray="3 3" />
            </svg>
            {layout.nodes.map((node) => {
              const place = { name: node.name, x: node.x, y: node.y, selected: node.name === selected, onSelect };
              const unit = store.unit(node.name);
              if (!dots) return <Node key={node.name} store={store} {...place} />;
              return unit ? <Dot key={node.name} {...unitLook(unit)} {...place} /> : null;
            })}
          </div>
        </div>
      </div>
      <div className="dag-tools">
        <IconButton icon={Minus} label="Smaller" onClick={() => setZoom((before) => Math.max(0.4, before / 1.25))} />
        <IconButton icon={Plus} label="Larger" onClick={() => setZoom((before) => Math.min(3, before * 1.25))} />
        <IconButton icon={Maximize2} label="Fit" onClick={() => setZoom(1)} />
      </div>
      <div className="legend" aria-hidden>
        <span>
          <svg width="22" height="4">
            <path d="M0 2H22" stroke="var(--ink)" strokeWidth="2" />
          </svg>
          critical path
        </span>
        <span>
          <svg width="22" height="4">
            <path d="M0 2H22" stroke="var(--control)" strokeDasharray="3 3" />
          </svg>
          not started
        </span>
      </div>
    </section>
  );
}

/** How far apart columns of dots stand so that they fill the width; in steps, so that a window that grows is not laid out at every pixel. */
function dotsApart(layers: string[][], width: number): number {
  const rows = Math.max(1, ...layers.map((layer) => layer.length));
  const scale = Math.max(SMALLEST_DOT, Math.min(1, (TALLEST - LEGEND - PADDING * 2) / (rows * (DOT.height + DOT.gapY))));
  const gap = (width - PADDING * 2) / scale / Math.max(1, layers.length) - DOT.width;
  return Math.round(Math.min(180, Math.max(40, gap)) / 10) * 10;
}

function costOf(unit: UnitModel | undefined): number {
  if (!unit) return 0;
  if (unit.status === "skipped") return 0.1;
  return unit.seconds ?? unit.usual_seconds ?? (unit.planned_minutes ?? 1) * 60;
}

/** All edges of one look as one path: hundreds of elements would cost more than everything else that is drawn. */
function linesOf(edges: PlacedEdge[], critical: Set<string>, unit: (name: string) => UnitModel | undefined) {
  const lines = { begun: "", waiting: "", criticalBegun: "", criticalWaiting: "" };
  for (const edge of edges) {
    const status = unit(edge.to)?.status;
    const waits = status === "waiting" || status === "not_started";
    const onPath = critical.has(edge.from) && critical.has(edge.to);
    const kind = onPath ? (waits ? "criticalWaiting" : "criticalBegun") : waits ? "waiting" : "begun";
    lines[kind] += curve(edge.points);
  }
  return lines;
}

function curve(points: [number, number][]): string {
  return points
    .map(([x, y], index) => {
      const before = points[index - 1];
      if (!before) return `M${x} ${y}`;
      if (before[1] === y) return `H${x}`;
      const middle = (before[0] + x) / 2;
      return `C${middle} ${before[1]} ${middle} ${y} ${x} ${y}`;
    })
    .join("");
}

interface NodeProps {
  store: RunStore;
  name: string;
  x: number;
  y: number;
  selected: boolean;
  onSelect: (unit: string) => void;
}

/** A dot says how a unit stands and nothing that changes with each resource. */
const Dot = memo(function Dot({ name, x, y, shape, word, selected, onSelect }: Omit<NodeProps, "store"> & Look) {
  return (
    <button
      type="button"
      className={`dot-node${selected ? " sel" : ""}`}
      style={{ left: x, top: y }}
      title={`${name}: ${word}`}
      aria-label={`${name}: ${word}`}
      onClick={() => onSelect(name)}
    >
      <StatusShape shape={shape} />
    </button>
  );
});

const Node = memo(function Node({ store, name, x, y, selected, onSelect }: NodeProps) {
  const unit = useUnit(store, name);
  if (!unit) return null;
  const look = unitLook(unit);
  const kind = cellClass(unit);
  const working = unit.status === "running" || unit.status === "rolling_back";
  return (
    <button
      type="button"
      className={`nd ${kind}${selected ? " sel" : ""}`}
      style={{ left: x, top: y, width: NODE.width, height: NODE.height }}
      aria-pressed={selected}
      onClick={() => onSelect(name)}
    >
      <StatusShape shape={look.shape} />
      <span className="t trunc">{name}</span>
      <span className="m">
        <NodeText unit={unit} store={store} />
      </span>
      <span className="hidden-text">{look.word}</span>
      {working ? <span className="pb" style={{ transform: `scaleX(${Math.max(0.04, progressOf(unit))})` }} /> : null}
    </button>
  );
});

function NodeText({ unit, store }: { unit: UnitModel; store: RunStore }) {
  const now = useNow() + store.clockOffset;
  switch (unit.status) {
    case "skipped":
      return <>unchanged</>;
    case "waiting": {
      const open = unit.needs.filter((need) => {
        const found = store.unit(need);
        return found && !isOver(found);
      });
      if (open.length === 0) return <>ready</>;
      return <>needs {open.length === 1 ? open[0] : `${open.length} units`}</>;
    }
    case "not_started":
      return <>not started</>;
    case "running":
    case "rolling_back": {
      const seconds = unit.started_at ? Math.max(0, (now - Date.parse(unit.started_at)) / 1000) : 0;
      const { done, failed, total } = unit.resources;
      return (
        <>
          {total > 0 ? <span className="num">{`${done + failed} of ${total}`}</span> : <span>{unit.status === "running" ? "starting" : "undoing"}</span>}
          <span className="num">{duration(Math.floor(seconds))}</span>
        </>
      );
    }
    case "failed":
      return <>failed{unit.seconds ? `, ${duration(unit.seconds)}` : ""}</>;
    case "rolled_back":
      return <>rolled back</>;
    case "succeeded":
      return (
        <>
          <Counts counts={unit.changes ?? unit.resources.by_op} same={false} />
          {unit.seconds ? <span className="num">{duration(unit.seconds)}</span> : null}
        </>
      );
  }
}

/**
 * Where units stand in the graph: layers from left to right, few crossings, long edges with a lane of their own.
 * A function from names to places; drawing is somebody else's work.
 */

export interface GraphInput {
  layers: string[][];
  needs: (unit: string) => string[];
  /** The edges to draw, each to a later layer; without them those of `needs` that no other path says. */
  edges?: [string, string][];
  /** How large a unit is drawn, and how far apart. */
  size?: NodeSize;
}

export interface NodeSize {
  width: number;
  height: number;
  gapX: number;
  gapY: number;
}

export interface PlacedNode {
  name: string;
  x: number;
  y: number;
}

export interface PlacedEdge {
  from: string;
  to: string;
  /** Points from the right side of one node to the left side of the other. */
  points: [number, number][];
}

export interface GraphLayout {
  nodes: PlacedNode[];
  edges: PlacedEdge[];
  width: number;
  height: number;
}

export const NODE: NodeSize = { width: 146, height: 38, gapX: 34, gapY: 12 };
/** Of many units only the shape is drawn. */
export const DOT: NodeSize = { width: 24, height: 24, gapX: 72, gapY: 4 };
const LANE = 12;
const SWEEPS = 6;

interface Slot {
  id: string;
  /** A unit, or a place where a long edge passes. */
  unit: string | null;
  height: number;
  y: number;
}

/** Edges that another path says already. */
export function reduced(layers: string[][], needs: (unit: string) => string[]): [string, string][] {
  const order = layers.flat();
  const known = new Set(order);
  const reach = new Map<string, Set<string>>();
  const kept: [string, string][] = [];
  const layerOf = new Map(layers.flatMap((layer, index) => layer.map((name) => [name, index] as const)));
  for (const name of order) {
    const direct = needs(name)
      .filter((need) => known.has(need))
      .sort((a, b) => (layerOf.get(b) ?? 0) - (layerOf.get(a) ?? 0));
    const reached = new Set<string>();
    for (const need of direct) {
      if (!reached.has(need)) kept.push([need, name]);
      reached.add(need);
      for (const far of reach.get(need) ?? []) reached.add(far);
    }
    reach.set(name, reached);
  }
  return kept;
}

export function layoutGraph({ layers, needs, edges = reduced(layers, needs), size = NODE }: GraphInput): GraphLayout {
  const layerOf = new Map(layers.flatMap((layer, index) => layer.map((name) => [name, index] as const)));
  const columns: Slot[][] = layers.map((layer) => layer.map((name) => ({ id: name, unit: name, height: size.height, y: 0 })));
  const neighbours = new Map<string, { left: string[]; right: string[] }>();
  const near = (id: string) => {
    const found = neighbours.get(id) ?? { left: [], right: [] };
    neighbours.set(id, found);
    return found;
  };
  const chains: { from: string; to: string; ids: string[] }[] = [];
  for (const [from, to] of edges) {
    const ids = [from];
    for (let column = (layerOf.get(from) ?? 0) + 1; column < (layerOf.get(to) ?? 0); column += 1) {
      const id = `${from}>${to}@${column}`;
      columns[column]?.push({ id, unit: null, height: LANE, y: 0 });
      ids.push(id);
    }
    ids.push(to);
    ids.slice(1).forEach((id, index) => {
      const before = ids[index] ?? from;
      near(before).right.push(id);
      near(id).left.push(before);
    });
    chains.push({ from, to, ids });
  }
  untangle(columns, near);
  const height = place(columns, near, size.gapY);
  const slots = new Map(columns.flat().map((slot) => [slot.id, slot]));
  const xOf = (column: number) => column * (size.width + size.gapX);
  const nodes = columns.flatMap((column, index) =>
    column.flatMap((slot) => (slot.unit ? [{ name: slot.unit, x: xOf(index), y: slot.y }] : [])),
  );
  const placed = chains.map(({ from, to, ids }) => ({ from, to, points: pointsOf(ids, slots, layerOf.get(from) ?? 0, xOf, size.width) }));
  return { nodes, edges: placed, width: Math.max(0, xOf(columns.length) - size.gapX), height };
}

function pointsOf(ids: string[], slots: Map<string, Slot>, first: number, xOf: (column: number) => number, width: number): [number, number][] {
  const points: [number, number][] = [];
  ids.forEach((id, index) => {
    const slot = slots.get(id);
    if (!slot) return;
    const middle = slot.y + slot.height / 2;
    const x = xOf(first + index);
    if (index > 0) points.push([x, middle]);
    if (index < ids.length - 1) points.push([x + width, middle]);
  });
  return points;
}

type Near = (id: string) => { left: string[]; right: string[] };

/** Orders every column by the middle of its neighbours, back and forth. */
function untangle(columns: Slot[][], near: Near): void {
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 0;
    const order = forward ? columns : [...columns].reverse();
    let positions = new Map<string, number>();
    for (const column of order) {
      const rank = (slot: Slot, index: number) => {
        const around = forward ? near(slot.id).left : near(slot.id).right;
        const known = around.map((id) => positions.get(id)).filter((at) => at !== undefined);
        return known.length > 0 ? known.reduce((sum, at) => sum + at, 0) / known.length : index;
      };
      const ranked = column.map((slot, index) => ({ slot, rank: rank(slot, index), index }));
      ranked.sort((a, b) => a.rank - b.rank || a.index - b.index);
      column.splice(0, column.length, ...ranked.map((one) => one.slot));
      positions = new Map(column.map((slot, index) => [slot.id, (index + 0.5) / column.length * 100]));
    }
  }
}

/** Gives every slot a height on the page: near its neighbours, in order, without overlap. */
function place(columns: Slot[][], near: Near, gap: number): number {
  const heightOf = (column: Slot[]) => column.reduce((sum, slot) => sum + slot.height + gap, -gap);
  const tallest = Math.max(0, ...columns.map(heightOf));
  const slots = new Map(columns.flat().map((slot) => [slot.id, slot]));
  for (const column of columns) {
    let y = (tallest - heightOf(column)) / 2;
    for (const slot of column) {
      slot.y = y;
      y += slot.height + gap;
    }
  }
  for (let round = 0; round < SWEEPS; round += 1) {
    for (const column of round % 2 === 0 ? columns : [...columns].reverse()) {
      for (const slot of column) {
        const around = [...near(slot.id).left, ...near(slot.id).right].map((id) => slots.get(id)).filter((one) => one !== undefined);
        if (around.length === 0) continue;
        const middle = around.reduce((sum, one) => sum + one.y + one.height / 2, 0) / around.length;
        slot.y += (middle - slot.height / 2 - slot.y) * 0.5;
      }
      separate(column, tallest, gap);
    }
  }
  return tallest;
}

function separate(column: Slot[], tallest: number, gap: number): void {
  let floor = 0;
  for (const slot of column) {
    slot.y = Math.max(slot.y, floor);
    floor = slot.y + slot.height + gap;
  }
  let ceiling = tallest;
  for (const slot of [...column].reverse()) {
    slot.y = Math.min(slot.y, ceiling - slot.height);
    ceiling = slot.y - gap;
  }
}

/** The chain of units that takes longest: what would have to be faster for the run to be faster. */
export function criticalPath(layers: string[][], needs: (unit: string) => string[], cost: (unit: string) => number): Set<string> {
  const best = new Map<string, { cost: number; from: string | null }>();
  let last: string | null = null;
  for (const name of layers.flat()) {
    let [longest, from] = [0, null as string | null];
    for (const need of needs(name)) {
      const found = best.get(need);
      if (found && found.cost > longest) [longest, from] = [found.cost, need];
    }
    best.set(name, { cost: longest + cost(name), from });
    if (last === null || longest + cost(name) > (best.get(last)?.cost ?? 0)) last = name;
  }
  const path = new Set<string>();
  while (last !== null) {
    path.add(last);
    last = best.get(last)?.from ?? null;
  }
  return path;
}

/**
 * What is around an item, as columns: what it contains or depends on to the right, what contains it or depends on it to the left.
 * A function from relationships to places, without drawing.
 */
import type { ItemGraph, ItemRelationship } from "../../api/queries/cmdb";
import { layoutGraph } from "../runs/graphLayout";
import type { GraphLayout } from "../runs/graphLayout";

/** Items that are drawn at most; the table has more. */
export const DRAWN = 300;

export interface Around {
  layout: GraphLayout;
  /** Relationships that do not lead to the right: drawn from item to item. */
  across: ItemRelationship[];
}

/** Only relationships of one kind, and the items that they still reach. */
export function narrowed(graph: ItemGraph, root: string, relationship: string | undefined): ItemGraph {
  if (!relationship) return graph;
  const relationships = graph.relationships.filter((one) => one.relationship === relationship);
  const columns = columnsOf(root, relationships);
  return { ...graph, relationships, items: graph.items.filter(({ item }) => columns.has(item.id)) };
}

/** How far to the right of the item each other one is, by the shortest way to it. */
export function columnsOf(root: string, relationships: ItemRelationship[]): Map<string, number> {
  const near = new Map<string, [string, number][]>();
  const add = (from: string, to: string, step: number) => near.set(from, [...(near.get(from) ?? []), [to, step]]);
  for (const { source, target } of relationships) {
    add(source, target, 1);
    add(target, source, -1);
  }
  const columns = new Map([[root, 0]]);
  const waiting = [root];
  for (let at = 0; at < waiting.length; at += 1) {
    const from = waiting[at] ?? root;
    for (const [to, step] of near.get(from) ?? []) {
      if (columns.has(to)) continue;
      columns.set(to, (columns.get(from) ?? 0) + step);
      waiting.push(to);
    }
  }
  return columns;
}

export function around(graph: ItemGraph, root: string): Around {
  const there = new Set(graph.items.map(({ item }) => item.id));
  const known = graph.relationships.filter((one) => there.has(one.source) && there.has(one.target));
  const columns = columnsOf(root, known);
  const least = Math.min(0, ...columns.values());
  const layers: string[][] = [];
  for (const { item } of graph.items) {
    const column = (columns.get(item.id) ?? 0) - least;
    while (layers.length <= column) layers.push([]);
    layers[column]?.push(item.id);
  }
  const leads = (one: ItemRelationship) => (columns.get(one.target) ?? 0) > (columns.get(one.source) ?? 0);
  const pairs = new Map<string, [string, string]>();
  for (const one of known.filter(leads)) pairs.set(`${one.source}>${one.target}`, [one.source, one.target]);
  const layout = layoutGraph({ layers, needs: () => [], edges: [...pairs.values()] });
  return { layout, across: known.filter((one) => !leads(one)) };
}

/** A value of an attribute in one line. */
export function valueText(value: unknown): string {
  if (value === undefined || value === null) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}

export interface ChangeLine {
  path: string;
  before: string;
  after: string;
}

/** What an entry of the history changed, as the server says it: `{field: {before, after}}`, attributes as `attributes.<name>`. */
export function changeLines(changes: unknown): ChangeLine[] {
  if (typeof changes !== "object" || changes === null) return [];
  return Object.entries(changes).map(([path, sides]) => {
    const { before, after } = (sides ?? {}) as { before?: unknown; after?: unknown };
    return { path, before: valueText(before), after: valueText(after) };
  });
}

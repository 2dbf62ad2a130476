import { describe, expect, it } from "vitest";

import type { ItemGraph } from "../../api/queries/cmdb";
import { around, changeLines, columnsOf, narrowed, valueText } from "./around";

const AT = "2026-01-01T00:00:00Z";
const relation = (source: string, relationship: string, target: string) => ({ id: `${source}${relationship}${target}`, source, target, relationship, attributes: {}, said_by: "run", created_at: AT });
const item = (id: string) => ({ depth: 0, item: { id, name: id, class: "c", attributes: {}, source: "run", rehearsal: false, external: false, status: "active", revision: 1, searched_whole: true, created_at: AT, updated_at: AT } });
const GRAPH = {
  complete: true,
  items: ["vpc", "unit", "subnet", "rule"].map(item),
  relationships: [relation("unit", "contains", "vpc"), relation("unit", "contains", "subnet"), relation("subnet", "depends_on", "vpc"), relation("vpc", "backs_up", "rule")],
} as unknown as ItemGraph;

describe("what is around an item", () => {
  it("has what leads to the item on the left, and what it leads to on the right", () => {
    const columns = columnsOf("vpc", GRAPH.relationships);
    expect([columns.get("unit"), columns.get("subnet"), columns.get("vpc"), columns.get("rule")]).toEqual([-1, -1, 0, 1]);
  });

  it("draws every item once and every relationship, also those within a column", () => {
    const { layout, across } = around(GRAPH, "vpc");
    expect(layout.nodes.map((node) => node.name).sort()).toEqual(["rule", "subnet", "unit", "vpc"]);
    expect(layout.edges.length + across.length).toBe(GRAPH.relationships.length);
    expect(across.map((one) => [one.source, one.target])).toEqual([["unit", "subnet"]]);
    const places = new Set(layout.nodes.map((node) => `${node.x} ${node.y}`));
    expect(places.size).toBe(4);
  });

  it("ends where items contain each other", () => {
    const round = { complete: true, items: ["a", "b"].map(item), relationships: [relation("a", "needs", "b"), relation("b", "needs", "a")] } as unknown as ItemGraph;
    const { layout, across } = around(round, "a");
    expect([layout.nodes.length, layout.edges.length, across.length]).toEqual([2, 1, 1]);
  });

  it("shows relationships of one kind, and only what they reach", () => {
    const contained = narrowed(GRAPH, "vpc", "contains");
    expect(contained.items.map((one) => one.item.id)).toEqual(["vpc", "unit", "subnet"]);
    expect(narrowed(GRAPH, "vpc", undefined)).toBe(GRAPH);
  });

  it("says what an entry of the history changed, with both values", () => {
    expect(changeLines({ "attributes.size": { before: 1, after: 2 }, status: { before: null, after: "active" } })).toEqual([
      { path: "attributes.size", before: "1", after: "2" },
      { path: "status", before: "none", after: "active" },
    ]);
    expect(changeLines(null)).toEqual([]);
    expect(valueText({ a: 1 })).toBe('{"a":1}');
  });
});

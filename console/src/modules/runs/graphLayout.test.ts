import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { NODE, criticalPath, layoutGraph, reduced } from "./graphLayout";

const NEEDS: Record<string, string[]> = { a: [], b: ["a"], c: ["a", "b"], d: ["c", "a"] };
const LAYERS = [["a"], ["b"], ["c"], ["d"]];
const needs = (name: string) => NEEDS[name] ?? [];

/** Layers of random width, where every unit needs some of those before it. */
const graphs = fc
  .array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 8 })
  .chain((widths) => {
    const layers = widths.map((width, layer) => Array.from({ length: width }, (_, index) => `u${layer}-${index}`));
    const earlier = layers.flatMap((layer, depth) => layer.map((name) => ({ name, before: layers.slice(0, depth).flat() })));
    const needs = earlier.map(({ name, before }) => fc.subarray(before, { maxLength: Math.min(3, before.length) }).map((some) => [name, some] as const));
    return fc.tuple(fc.constant(layers), fc.tuple(...needs).map((pairs) => new Map(pairs)));
  });

describe("the graph's layout", () => {
  it("draws no edge that another path says already", () => {
    expect(reduced(LAYERS, needs)).toEqual([["a", "b"], ["b", "c"], ["c", "d"]]);
  });

  it("places every unit once, in the column of its layer, without overlap", () => {
    fc.assert(
      fc.property(graphs, ([layers, map]) => {
        const layout = layoutGraph({ layers, needs: (name) => [...(map.get(name) ?? [])] });
        expect(layout.nodes.map((node) => node.name).sort()).toEqual(layers.flat().sort());
        for (const layer of layers) {
          const column = layout.nodes.filter((node) => layer.includes(node.name)).sort((a, b) => a.y - b.y);
          expect(new Set(column.map((node) => node.x)).size).toBe(1);
          column.slice(1).forEach((node, index) => {
            expect(node.y - (column[index]?.y ?? 0)).toBeGreaterThanOrEqual(NODE.height);
          });
          for (const node of column) expect(node.y).toBeGreaterThanOrEqual(-0.001);
        }
      }),
      { numRuns: 100 },
    );
  });

  it("finds the chain that takes longest", () => {
    const cost: Record<string, number> = { a: 1, b: 9, c: 1, d: 2 };
    expect([...criticalPath(LAYERS, needs, (name) => cost[name] ?? 0)].sort()).toEqual(["a", "b", "c", "d"]);
    expect(criticalPath([["x", "y"]], () => [], (name) => (name === "y" ? 2 : 1))).toEqual(new Set(["y"]));
  });

  it("is quick for three hundred units", () => {
    const layers = Array.from({ length: 30 }, (_, layer) => Array.from({ length: 10 }, (_, index) => `u${layer}-${index}`));
    const began = performance.now();
    layoutGraph({ layers, needs: (name) => (name.startsWith("u0-") ? [] : (layers[Number(name.slice(1).split("-")[0]) - 1] ?? []).slice(0, 3)) });
    expect(performance.now() - began).toBeLessThan(1000);
  });
});

/** What is around an item, drawn; the table beside it has the same relationships in words. */
import { Link } from "@tanstack/react-router";
import { useLayoutEffect, useMemo, useRef, useState } from "react";

import type { Item, ItemGraph } from "../../api/queries/cmdb";
import { NODE } from "../runs/graphLayout";
import { shortType } from "../runs/ResourceTree";
import { around } from "./around";

const PADDING = 18;
const SMALLEST = 0.6;
const SHORTEST = 150;
const TALLEST = 420;

export function ItemGraphView({ graph, root }: { graph: ItemGraph; root: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const { layout, across } = useMemo(() => around(graph, root), [graph, root]);
  const items = useMemo(() => new Map(graph.items.map(({ item }) => [item.id, item])), [graph]);
  const places = useMemo(() => new Map(layout.nodes.map((node) => [node.name, node])), [layout]);
  const scale = Math.max(SMALLEST, Math.min(1, (width - PADDING * 2) / Math.max(1, layout.width)));
  const [wide, tall] = [layout.width * scale, layout.height * scale];
  const left = Math.max(PADDING, (width - wide) / 2);
  return (
    <section className="dag item-dag card" aria-label="Graph of relationships" style={{ height: Math.min(TALLEST, Math.max(SHORTEST, tall + PADDING * 2)) }}>
      <a href="#relationships" className="btn sm skip-graph">
        To the table with the same relationships
      </a>
      <div className="dag-scroll" ref={box} tabIndex={0} role="group" aria-label="Graph, scrolls">
        <div style={{ width: left + wide + PADDING, height: tall + PADDING * 2, position: "relative" }}>
          <div className="dag-canvas" style={{ left, top: Math.max(PADDING, (SHORTEST - tall) / 2), width: layout.width, height: layout.height, transform: `scale(${scale})` }}>
            <svg className="e" width={layout.width} height={layout.height} aria-hidden>
              {layout.edges.map((edge) => (
                <path key={`${edge.from}>${edge.to}`} d={line(edge.points)} fill="none" stroke="var(--control)" />
              ))}
              {across.map((one) => {
                const [from, to] = [places.get(one.source), places.get(one.target)];
                if (!from || !to) return null;
                const at = (node: { x: number; y: number }): [number, number] => [node.x + NODE.width / 2, node.y + NODE.height / 2];
                return <path key={one.id} d={line([at(from), at(to)])} fill="none" stroke="var(--control)" strokeDasharray="3 3" />;
              })}
            </svg>
            {layout.nodes.map((node) => {
              const item = items.get(node.name);
              return item ? <ItemCard key={node.name} item={item} x={node.x} y={node.y} root={node.name === root} /> : null;
            })}
          </div>
        </div>
      </div>
    </section>
  );
}

function ItemCard({ item, x, y, root }: { item: Item; x: number; y: number; root: boolean }) {
  return (
    <Link
      to={`/cmdb/resources/${item.id}`}
      search={{ tab: "relationships" } as never}
      className={root ? "nd item sel" : item.status === "active" ? "nd item" : "nd item wait"}
      style={{ left: x, top: y, width: NODE.width, height: NODE.height }}
      title={`${item.name}, ${item.class}`}
      aria-current={root ? "true" : undefined}
    >
      <span className="t trunc">{item.name}</span>
      <span className="m trunc">{shortType(item.class)}</span>
    </Link>
  );
}

function line(points: [number, number][]): string {
  return points
    .map(([x, y], index) => {
      const before = points[index - 1];
      if (!before) return `M${x} ${y}`;
      const middle = (before[0] + x) / 2;
      return `C${middle} ${before[1]} ${middle} ${y} ${x} ${y}`;
    })
    .join("");
}

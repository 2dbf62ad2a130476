/** A list as a table whose rows are drawn only where they can be seen. Rows may lead somewhere. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import type { ReactNode } from "react";

export interface Column<Row> {
  key: string;
  head: string;
  /** A width of the grid, such as `1fr` or `120px`. */
  width: string;
  cell: (row: Row) => ReactNode;
  right?: boolean;
  /** Its content may hang out of the cell, as menus do. */
  free?: boolean;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string;
  onOpen?: (row: Row) => void;
  rowHeight?: number;
}

const GAP = 16;
const PADDING = 28;

/** The width below which a table scrolls sideways: the least of every column, and what is between them. */
export function leastWidth(widths: string[]): number {
  const least = widths.map((width) => Number(/(\d+)px/.exec(width)?.[1] ?? 60));
  return least.reduce((sum, one) => sum + one, PADDING + GAP * (widths.length - 1));
}

/** Lists up to this long are drawn whole: the page scrolls, find-in-page works. */
const WHOLE = 120;

/** As tall as the style sheet makes them. */
function usualHeight(): number {
  return { compact: 29, touch: 45 }[document.documentElement.dataset["density"] ?? ""] ?? 39;
}

export function DataTable<Row>({ label, columns, rows, keyOf, onOpen, rowHeight = usualHeight() }: Props<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const long = rows.length > WHOLE;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    enabled: long,
  });
  // Every row is a grid of its own: what makes them one table is that all have the same width, whatever is in them.
  const grid = { gridTemplateColumns: columns.map((column) => column.width).join(" "), minWidth: leastWidth(columns.map((column) => column.width)) };
  const shown = long ? virtual.getVirtualItems().map((item) => item.index) : rows.map((_, index) => index);
  const first = long ? (virtual.getVirtualItems()[0]?.start ?? 0) : 0;
  const body = shown.map((index) => {
    const row = rows[index];
    if (row === undefined) return null;
    return (
      <div
        key={keyOf(row)}
        role="row"
        aria-rowindex={index + 2}
        // Rows that lead somewhere are reached with j and k; their link is the stop of the Tab key.
        tabIndex={onOpen ? -1 : undefined}
        className={onOpen ? "trow go" : "trow"}
        style={grid}
        onClick={(event) => {
          if (onOpen && !(event.target as HTMLElement).closest("a, button, input")) onOpen(row);
        }}
      >
        {columns.map((column) => (
          <div key={column.key} role="cell" className={[column.right && "r", column.free && "free"].filter(Boolean).join(" ")}>
            {column.cell(row)}
          </div>
        ))}
      </div>
    );
  });
  return (
    <div
      className="table"
      ref={scroller}
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      style={long ? { maxHeight: "max(320px, calc(100vh - 214px))" } : undefined}
    >
      <div role="rowgroup">
        <div role="row" aria-rowindex={1} className="thead" style={grid}>
          {columns.map((column) => (
            <div key={column.key} role="columnheader" className={column.right ? "r" : undefined}>
              {column.head || <span className="hidden-text">actions</span>}
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" style={long ? { height: virtual.getTotalSize(), paddingTop: first } : undefined}>
        {body}
      </div>
    </div>
  );
}

/**
 * The resources of a unit by type. Those that move or failed come first and stay open; what is done or waits folds to
 * one line per type. Only what can be seen is drawn.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight } from "lucide-react";
import { memo, useMemo, useRef, useState } from "react";

import type { ResourceRow } from "../../api/live/types";
import { OpGlyph, kindOf } from "../../components/Operations";
import { StatusShape } from "../../components/StatusShape";
import type { Shape } from "../../components/StatusShape";
import { duration } from "../../components/Time";

const ROW = 24;

interface Group {
  type: string;
  rows: ResourceRow[];
  /** Everything in it is in the same state. */
  settled: boolean;
}

type Line = { kind: "group"; group: Group; open: boolean } | { kind: "row"; row: ResourceRow; deep: boolean };

const DONE: Record<string, string> = {
  create: "created",
  update: "updated",
  replace: "replaced",
  delete: "deleted",
  same: "read",
};
const DOING: Record<string, string> = {
  create: "creating",
  update: "updating",
  replace: "replacing",
  delete: "deleting",
  same: "reading",
};

export function words(row: ResourceRow): { shape: Shape; word: string } {
  const kind = kindOf(row.op);
  switch (row.status) {
    case "planned":
      return { shape: "waiting", word: `would ${kind}` };
    case "started":
      return { shape: "running", word: DOING[kind] ?? row.op };
    case "done":
      return { shape: "ok", word: DONE[kind] ?? row.op };
    case "failed":
      return { shape: "failed", word: "failed" };
  }
}

/** `aws:ec2/securityGroup:SecurityGroup` is `ec2:SecurityGroup` to a reader. */
export function shortType(type: string): string {
  const [first = "", middle = "", last = ""] = type.split(":");
  if (last === "") return type;
  const area = middle.split("/")[0] ?? middle;
  return area === "index" ? `${first}:${last}` : `${area}:${last}`;
}

function groupsOf(rows: ResourceRow[]): Group[] {
  const types = new Map<string, ResourceRow[]>();
  for (const row of rows) {
    const own = types.get(row.type);
    if (own) own.push(row);
    else types.set(row.type, [row]);
  }
  const groups = [...types].map(([type, own]) => {
    const first = own[0]?.status;
    const settled = own.every((row) => row.status === first) && first !== "started" && first !== "failed";
    return { type, rows: own, settled };
  });
  const rank = (group: Group) => {
    if (group.rows.some((row) => row.status === "failed")) return 0;
    if (group.rows.some((row) => row.status === "started")) return 1;
    return group.settled && group.rows[0]?.status === "done" ? 3 : 2;
  };
  return groups.sort((a, b) => rank(a) - rank(b) || a.type.localeCompare(b.type));
}

interface Props {
  rows: ResourceRow[];
  all: boolean;
  find: string;
}

export function ResourceTree({ rows, all, find }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const [toggled, setToggled] = useState<Map<string, boolean>>(new Map());
  const lines = useMemo<Line[]>(() => {
    const wanted = find.toLowerCase();
    const found = wanted ? rows.filter((row) => `${row.name} ${row.type} ${row.id ?? ""}`.toLowerCase().includes(wanted)) : rows;
    if (all || wanted) return found.map((row) => ({ kind: "row", row, deep: false }));
    return groupsOf(found).flatMap<Line>((group) => {
      if (group.rows.length === 1 && group.rows[0]) return [{ kind: "row", row: group.rows[0], deep: false }];
      const open = toggled.get(group.type) ?? !group.settled;
      const own: Line[] = open ? group.rows.map((row) => ({ kind: "row", row, deep: true })) : [];
      return [{ kind: "group", group, open }, ...own];
    });
  }, [rows, all, find, toggled]);
  const virtual = useVirtualizer({ count: lines.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 6 });
  return (
    <div className="rt" ref={scroller} tabIndex={0} role="group" aria-label="Resources">
      <ul style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index];
          if (!line) return null;
          const top = item.start;
          return line.kind === "group" ? (
            <GroupLine
              key={line.group.type}
              group={line.group}
              open={line.open}
              top={top}
              onToggle={() => setToggled(new Map(toggled).set(line.group.type, !line.open))}
            />
          ) : (
            <RowLine key={line.row.urn} row={line.row} deep={line.deep} top={top} />
          );
        })}
      </ul>
      {lines.length === 0 ? <p className="mute rt-empty">{find ? "No resource is called that." : "No resource was touched yet."}</p> : null}
    </div>
  );
}

interface GroupLineProps {
  group: Group;
  open: boolean;
  top: number;
  onToggle: () => void;
}

function GroupLine({ group, open, top, onToggle }: GroupLineProps) {
  const Icon = open ? ChevronDown : ChevronRight;
  const over = group.rows.filter((row) => row.status === "done" || row.status === "failed").length;
  const first = group.rows[0];
  const look = first && group.settled ? words(first) : null;
  const failed = group.rows.some((row) => row.status === "failed");
  const seconds = group.rows.reduce((sum, row) => sum + (row.seconds ?? 0), 0);
  return (
    <li className="rr" style={{ top }}>
      <button type="button" className="rn" aria-expanded={open} onClick={onToggle}>
        <Icon className="s mute" aria-hidden />
        {first ? <OpGlyph op={first.op} /> : null}
        <span className="trunc">
          <span className="b">{group.rows.length}</span> <span className="mono sec">{shortType(group.type)}</span>
        </span>
      </button>
      <span className="rs">
        {look ? (
          <>
            <StatusShape shape={look.shape} />
            {group.rows.length} {look.word}
          </>
        ) : (
          <>
            <StatusShape shape={failed ? "failed" : "running"} label={failed ? "failed" : "running"} />
            {over} of {group.rows.length}
          </>
        )}
      </span>
      <span className="rd num">{seconds > 0 ? duration(seconds) : ""}</span>
    </li>
  );
}

const RowLine = memo(function RowLine({ row, deep, top }: { row: ResourceRow; deep: boolean; top: number }) {
  const look = words(row);
  return (
    <li className="rr" style={{ top }} title={`${row.urn}${row.id ? `\n${row.id}` : ""}`}>
      <span className={deep ? "rn deep" : "rn"}>
        <OpGlyph op={row.op} />
        <span className="trunc">
          <span className={row.status === "started" || row.status === "failed" ? "b" : undefined}>{row.name}</span>{" "}
          <span className="mono mute">{shortType(row.type)}</span>
        </span>
      </span>
      <span className="rs">
        <StatusShape shape={look.shape} />
        {look.word}
      </span>
      <span className="rd num">{row.seconds ? duration(row.seconds) : ""}</span>
    </li>
  );
});

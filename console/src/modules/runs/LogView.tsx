/** What programs, providers and the engine say. Follows until one scrolls up; then says how much is new. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, Download } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";

import type { RunStore } from "../../api/live/store";
import type { LogLine } from "../../api/live/types";
import { readWholeLog } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { Segmented } from "../../components/Choice";
import { saveFile } from "../../components/save";
import { timeOfDay } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { useOlderLines, usePart } from "./useRun";

const ROW = 18;

type Scope = "unit" | "all";
type Level = "all" | "warning";

interface Props {
  store: RunStore;
  run: string;
  tenant: string | undefined;
  unit: string | undefined;
}

interface LogRow extends LogLine {
  /** Of several rows of one line, the one with its time. */
  first: boolean;
}

interface Wanted {
  unit: string | undefined;
  level: Level;
  find: string;
}

/**
 * The rows of a log that grows: what was looked at stays, and only what is new is looked at, because fifty thousand lines in
 * every frame are too many.
 */
export class LogRows {
  #key = "";
  #first = -1;
  #last = 0;
  #rows: LogRow[] = [];

  of(log: LogLine[], { unit, level, find }: Wanted): LogRow[] {
    const key = JSON.stringify([unit, level, find]);
    const first = log[0]?.seq ?? 0;
    if (key !== this.#key || first !== this.#first || (log.at(-1)?.seq ?? 0) < this.#last) {
      this.#key = key;
      this.#first = first;
      this.#last = 0;
      this.#rows = [];
    }
    let from = log.length;
    while (from > 0 && (log[from - 1]?.seq ?? 0) > this.#last) from -= 1;
    const wanted = find.toLowerCase();
    const added: LogRow[] = [];
    for (const line of log.slice(from)) {
      this.#last = line.seq;
      if (unit && line.unit !== unit) continue;
      if (level === "warning" && line.level !== "warning" && line.level !== "error") continue;
      if (wanted && !line.message.toLowerCase().includes(wanted)) continue;
      // One row per line of text: rows of one height can be drawn in part.
      plain(line.message).split("\n").forEach((message, index) => added.push({ ...line, message, first: index === 0 }));
    }
    if (added.length > 0) this.#rows = [...this.#rows, ...added];
    return this.#rows;
  }
}

const COLOURS = /\u001b\[[0-9;]*[A-Za-z]/g;

/** Without the colours that programs give to terminals. */
export function plain(text: string): string {
  return text.replace(COLOURS, "");
}

function textOf(line: LogLine): string {
  return `${line.at} ${line.level.toUpperCase()} ${line.unit ?? "run"} ${plain(line.message)}`;
}

export function LogView({ store, run, tenant, unit }: Props) {
  const older = useOlderLines(store, run, tenant);
  const say = useSay();
  const [rows] = useState(() => new LogRows());
  const version = usePart(store, "log");
  const [scope, setScope] = useState<Scope>("unit");
  const [level, setLevel] = useState<Level>("all");
  const [find, setFind] = useState("");
  const [follow, setFollow] = useState(true);
  const [seen, setSeen] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => {
    void version;
    return rows.of(store.model.log, { unit: scope === "unit" ? unit : undefined, level, find });
  }, [store, rows, version, scope, level, find, unit]);
  const download = () => {
    readWholeLog(tenant, run)
      .then((all) => saveFile("run.log", all.map(textOf).join("\n")))
      .catch((error: Error) => say(error.message, true));
  };
  const virtual = useVirtualizer({ count: lines.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 6 });
  const total = lines.length;
  useEffect(() => {
    if (!follow || total === 0) return;
    virtual.scrollToIndex(total - 1, { align: "end" });
    setSeen(total);
  }, [follow, total, virtual]);
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < ROW * 2;
    if (!atEnd && follow) setSeen(total);
    setFollow(atEnd);
  };
  const fresh = follow ? 0 : Math.max(0, total - seen);
  return (
    <section className="log" aria-label="Log">
      <div className="log-bar">
        <Segmented
          label="Whose log"
          value={unit ? scope : "all"}
          options={unit ? [{ value: "unit", label: "Log" }, { value: "all", label: "All units" }] : [{ value: "all", label: "All units" }]}
          onChange={setScope}
        />
        <Segmented
          label="Level"
          value={level}
          options={[
            { value: "all", label: "All levels" },
            { value: "warning", label: "Warnings", count: store.model.warnings + store.model.errors },
          ]}
          onChange={setLevel}
        />
        <input className="input sm grow" type="search" placeholder="Find" aria-label="Find in the log" value={find} onChange={(event) => setFind(event.target.value)} />
        <Button size="sm" icon={Download} onClick={download} aria-label={`Download the whole log: ${total.toLocaleString("en")} lines here`}>
          {total.toLocaleString("en")}
        </Button>
        <Button size="sm" icon={ArrowDown} className="log-follow" onClick={() => setFollow(true)}>
          {follow ? "Following" : fresh > 0 ? `${fresh} new` : "Follow"}
        </Button>
      </div>
      {older.more ? (
        <button type="button" className="link log-older small" onClick={older.read}>
          Read older lines
        </button>
      ) : null}
      <div className="log-scroll" ref={scroller} onScroll={onScroll} tabIndex={0} role="log" aria-live="off" aria-label="Log lines">
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => {
            const line = lines[item.index];
            if (!line) return null;
            return (
              <div key={item.key} className={`ll ${line.level}`} style={{ top: item.start }} title={line.message}>
                <span className="at">{line.first ? timeOfDay(line.at) : ""}</span>
                <span className="who">{line.first ? (line.unit ?? "run") : ""}</span>
                <span className="tx trunc">{line.message}</span>
              </div>
            );
          })}
        </div>
        {total === 0 ? <p className="mute log-empty">Nothing was said{find ? " like that" : " yet"}.</p> : null}
      </div>
    </section>
  );
}

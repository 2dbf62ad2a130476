/** Keys of the whole console. Single letters can be switched off, and never count while somebody types. */
import { useEffect, useRef, useState } from "react";

import { Dialog } from "../../components/Dialog";
import { Tick } from "../../components/Field";
import { DESTINATIONS } from "./navigation";

const PLACE = "nimbus.keys";
/** How long `g` waits for its letter. */
const CHORD_MS = 1200;

export function lettersOn(): boolean {
  return localStorage.getItem(PLACE) !== "off";
}

export function switchLetters(on: boolean): void {
  localStorage.setItem(PLACE, on ? "on" : "off");
}

export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return Boolean(target?.closest("input, textarea, select, [contenteditable], dialog"));
}

interface Keys {
  go: (to: string) => void;
  palette: () => void;
  help: () => void;
}

export function useKeys({ go, palette, help }: Keys): void {
  const chord = useRef(0);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        palette();
        return;
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event) || !lettersOn()) return;
      if (event.key === "?") help();
      if (event.key === "g") {
        chord.current = Date.now();
        return;
      }
      if (Date.now() - chord.current < CHORD_MS) {
        chord.current = 0;
        const found = DESTINATIONS.find((one) => one.key === event.key);
        if (found) {
          event.preventDefault();
          event.stopImmediatePropagation();
          go(found.to);
        }
      }
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [go, palette, help]);
}

/** Keys of one page, while it is there. */
export function usePageKeys(keys: Record<string, () => void>): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event) || !lettersOn()) return;
      const act = latest.current[event.key];
      if (!act) return;
      // What has the focus answers to Enter itself.
      if (event.key === "Enter" && (event.target as HTMLElement | null)?.closest("a, button, summary")) return;
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}

/** Moves between rows that lead somewhere, opens them, and finds the filter of a list. */
export function useListKeys(): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || !lettersOn()) return;
      const main = document.getElementById("main");
      if (!main || isTyping(event)) return;
      if (event.key === "/") {
        const filter = main.querySelector<HTMLElement>(".filters input[type=search]");
        if (!filter) return;
        event.preventDefault();
        filter.focus();
        return;
      }
      const rows = [...main.querySelectorAll<HTMLElement>(".trow.go")];
      if (rows.length === 0) return;
      const at = rows.indexOf(document.activeElement as HTMLElement);
      if (event.key === "j" || event.key === "k") {
        event.preventDefault();
        const next = rows[Math.min(rows.length - 1, Math.max(0, at + (event.key === "j" ? 1 : -1)))];
        next?.focus();
        next?.scrollIntoView({ block: "nearest" });
      }
      if (event.key === "Enter" && at >= 0) rows[at]?.click();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}

type KeyLine = [string, string];

const RUN_KEYS: KeyLine[] = [
  ["j / k", "next or previous unit"],
  ["Enter", "open the unit"],
  ["f", "first failure"],
  ["n", "back to now"],
  ["[ / ]", "replay: step back or on"],
  ["/", "filter units"],
];
const PLAN_KEYS: KeyLine[] = [
  ["j / k", "next or previous unit that changes"],
  ["x", "mark the unit as reviewed"],
  ["/", "filter changes"],
];
const LIST_KEYS: KeyLine[] = [
  ["j / k", "next or previous row"],
  ["Enter", "open the row"],
  ["/", "filter the list"],
];

/** The keys that the page at this address has of its own. */
export function keysOf(path: string): KeyLine[] {
  if (/^\/runs\/./.test(path)) return RUN_KEYS;
  if (path.startsWith("/plans/")) return PLAN_KEYS;
  return LIST_KEYS;
}

export function KeyHelp({ path, onClose }: { path: string; onClose: () => void }) {
  const [on, setOn] = useState(lettersOn);
  return (
    <Dialog title="Keys and help" onClose={onClose}>
      <h3 className="h2">On this page</h3>
      <KeyList lines={keysOf(path)} />
      <h3 className="h2">Everywhere</h3>
      <KeyList
        lines={[
          ["Ctrl K", "search, paste a URN or id, run a command"],
          ["?", "this help"],
          ["Esc", "close what is open"],
          ...DESTINATIONS.flatMap<KeyLine>((one) => (one.key ? [[`g ${one.key}`, one.label]] : [])),
        ]}
      />
      <Tick
        checked={on}
        onChange={(event) => {
          switchLetters(event.target.checked);
          setOn(event.target.checked);
        }}
      >
        Single letters are keys
      </Tick>
      <p className="mute">
        Everything here can be done with <code className="mono">nimbus</code> as well; the API is described at{" "}
        <code className="mono">/api/v1/openapi.json</code>.
      </p>
    </Dialog>
  );
}

function KeyList({ lines }: { lines: KeyLine[] }) {
  return (
    <dl className="pairs keys">
      {lines.map(([key, what]) => (
        <div key={key} style={{ display: "contents" }}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}

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
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}

const RUN_KEYS: [string, string][] = [
  ["j / k", "next or previous unit"],
  ["Enter", "open the unit"],
  ["f", "first failure"],
  ["n", "back to now"],
  ["[ / ]", "replay: step back or on"],
  ["/", "filter"],
];

export function KeyHelp({ onClose }: { onClose: () => void }) {
  const [on, setOn] = useState(lettersOn);
  return (
    <Dialog title="Keys and help" onClose={onClose}>
      <dl className="pairs">
        <dt>
          <kbd>Ctrl K</kbd>
        </dt>
        <dd>search or run a command</dd>
        {DESTINATIONS.filter((one) => one.key).map((one) => (
          <div key={one.to} style={{ display: "contents" }}>
            <dt>
              <kbd>g</kbd> <kbd>{one.key}</kbd>
            </dt>
            <dd>{one.label}</dd>
          </div>
        ))}
        {RUN_KEYS.map(([key, what]) => (
          <div key={key} style={{ display: "contents" }}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what} (run)</dd>
          </div>
        ))}
      </dl>
      <Tick
        checked={on}
        onChange={(event) => {
          localStorage.setItem(PLACE, event.target.checked ? "on" : "off");
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

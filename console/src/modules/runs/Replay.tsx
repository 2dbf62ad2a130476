/** A finished run once more, from its events: drag, step, or let it play. */
import { Pause, Play, X } from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";

import { apply, emptyModel } from "../../api/live/model";
import type { RunModel } from "../../api/live/model";
import type { RunStore } from "../../api/live/store";
import type { NumberedEvent } from "../../api/live/types";
import { IconButton } from "../../components/Button";
import { timeOfDay } from "../../components/Time";
import { usePageKeys } from "../shell/keys";

/** A replay takes about this long. */
const SECONDS = 30;
const FRAME_MS = 100;

/** The model as it was at a time. What comes later is only known to have been planned. */
export function modelAt(events: NumberedEvent[], time: number, whole: RunModel): RunModel {
  const model = emptyModel();
  const changed = new Set<string>();
  let planned = false;
  for (const event of events) {
    const isPlan = event.event.event === "plan";
    if (Date.parse(event.event.at) > time) {
      if (planned) break;
      // The plan was known before anything happened, however long after the first word it was written down.
      if (!isPlan) continue;
    }
    apply(model, event, changed);
    planned ||= isPlan;
  }
  const ended = model.endedAt !== null;
  const run = whole.run;
  model.requestedByName = whole.requestedByName;
  model.run = run && !ended ? { ...run, status: "running", result: null, ended_at: null, problem: undefined } : run;
  for (const [name, unit] of model.units) {
    const known = whole.units.get(name);
    if (known) model.units.set(name, { ...unit, needs: unit.needs.length > 0 ? unit.needs : known.needs, usual_seconds: known.usual_seconds ?? null });
  }
  return model;
}

interface Props {
  store: RunStore;
  events: NumberedEvent[];
  whole: RunModel;
  onClose: () => void;
}

export function Replay({ store, events, whole, onClose }: Props) {
  const first = Date.parse(events[0]?.event.at ?? "");
  const last = Date.parse(events.at(-1)?.event.at ?? "");
  const [time, setTime] = useState(first);
  const [playing, setPlaying] = useState(true);
  const length = Math.max(1, last - first);
  const clock = useRef(time);

  const show = useCallback(
    (next: number) => {
      const bounded = Math.min(last, Math.max(first, next));
      clock.current = bounded;
      setTime(bounded);
      store.replace(modelAt(events, bounded, whole));
      // Durations count from the time that is shown.
      store.clockOffset = bounded - Date.now();
      store.setFreshness("replay");
    },
    [store, events, whole, first, last],
  );

  // It begins at the beginning, also for whoever holds it before it has moved.
  useEffect(() => show(clock.current), [show]);

  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      const next = clock.current + (length / SECONDS) * (FRAME_MS / 1000);
      show(next);
      if (next >= last) setPlaying(false);
    }, FRAME_MS);
    return () => clearInterval(timer);
  }, [playing, length, last, show]);

  const step = length / 40;
  usePageKeys({
    "[": () => show(clock.current - step),
    "]": () => show(clock.current + step),
    n: onClose,
  });
  return (
    <div className="replay" role="group" aria-label="Replay">
      <IconButton
        icon={playing ? Pause : Play}
        label={playing ? "Hold" : "Play"}
        onClick={() => {
          if (!playing && clock.current >= last) show(first);
          setPlaying(!playing);
        }}
      />
      <input
        type="range"
        aria-label="Time of the run"
        aria-valuetext={timeOfDay(time)}
        min={first}
        max={last}
        step={Math.max(1, Math.round(length / 500))}
        value={time}
        // Whoever takes hold of it does not want it to move on.
        onKeyDown={() => setPlaying(false)}
        onPointerDown={() => setPlaying(false)}
        onChange={(event) => {
          setPlaying(false);
          show(Number(event.target.value));
        }}
      />
      <span className="num">{timeOfDay(time)}</span>
      <IconButton icon={X} label="End the replay" onClick={onClose} />
    </div>
  );
}

/** Times and durations: relative on screen, exact on hover, one clock for all of them. */
import { useSyncExternalStore } from "react";

type Listener = () => void;
const listeners = new Set<Listener>();
let second = Math.floor(Date.now() / 1000);
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: Listener): Listener {
  listeners.add(listener);
  timer ??= setInterval(() => {
    second = Math.floor(Date.now() / 1000);
    for (const one of listeners) one();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The time in milliseconds, once a second. */
export function useNow(): number {
  // The same clock where a component is drawn without a browser, as tests do.
  const current = () => second;
  return useSyncExternalStore(subscribe, current, current) * 1000;
}

export function duration(seconds: number): string {
  if (seconds < 0) return "0s";
  if (seconds < 10 && seconds % 1 !== 0) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  if (hours > 0) return `${hours}h ${String(minutes).padStart(2, "0")}m`;
  return `${minutes}m ${String(rest).padStart(2, "0")}s`;
}

/** `20:41`, as a clock that counts up shows it. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  const tail = `${String(minutes).padStart(hours > 0 ? 2 : 1, "0")}:${String(rest).padStart(2, "0")}`;
  return hours > 0 ? `${hours}:${tail}` : tail;
}

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [30, "day"],
  [12, "month"],
  [Number.POSITIVE_INFINITY, "year"],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function relative(at: number, now: number): string {
  let value = (at - now) / 1000;
  if (Math.abs(value) < 5) return "now";
  for (const [size, unit] of STEPS) {
    if (Math.abs(value) < size) return words.format(Math.round(value), unit);
    value /= size;
  }
  return "";
}

const wallClock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function timeOfDay(at: string | number | Date): string {
  return wallClock.format(new Date(at));
}

export function Time({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span className="mute">never</span>;
  return (
    <time dateTime={at} title={`${new Date(at).toLocaleString("en-GB", { timeZoneName: "short" })}\n${at}`} className="num">
      {relative(Date.parse(at), now)}
    </time>
  );
}

/** How tall rows are; remembered on this machine. */
import { useSyncExternalStore } from "react";

export type Density = "compact" | "default" | "touch";
const PLACE = "nimbus.density";
const listeners = new Set<() => void>();

export function chosenDensity(): Density {
  const text = localStorage.getItem(PLACE);
  return text === "compact" || text === "touch" ? text : "default";
}

export function applyDensity(): void {
  document.documentElement.dataset["density"] = chosenDensity();
}

export function chooseDensity(density: Density): void {
  localStorage.setItem(PLACE, density);
  applyDensity();
  for (const listener of listeners) listener();
}

export function useDensity(): Density {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosenDensity);
}

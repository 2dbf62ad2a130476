/** Light, dark, or what the system says; remembered on this machine. */
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const PLACE = "nimbus.theme";
const listeners = new Set<() => void>();
const system = window.matchMedia("(prefers-color-scheme: dark)");

export function chosenTheme(): Theme {
  const text = localStorage.getItem(PLACE);
  return text === "light" || text === "dark" ? text : "system";
}

export function applyTheme(): void {
  const theme = chosenTheme();
  const dark = theme === "dark" || (theme === "system" && system.matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(PLACE, theme);
  applyTheme();
  for (const listener of listeners) listener();
}

system.addEventListener("change", applyTheme);

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosenTheme);
}

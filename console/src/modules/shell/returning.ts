/** Where somebody was when the session ended: the field, by its label, so that signing in leads back to it. */
import { useEffect } from "react";

const PLACE = "nimbus.returning";
/** What is read first may take a while to be there. */
const PATIENCE_MS = 8_000;

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

function labelOf(control: Control): string {
  return control.getAttribute("aria-label") ?? control.labels?.[0]?.textContent?.trim() ?? "";
}

/** Remembers the field that has the focus. Never what is in it. */
export function rememberField(path: string): void {
  const active = document.activeElement;
  if (!(active instanceof HTMLInputElement || active instanceof HTMLTextAreaElement || active instanceof HTMLSelectElement)) return;
  const label = labelOf(active);
  if (label) sessionStorage.setItem(PLACE, JSON.stringify({ path, label }));
}

/** Goes back to the field, once, when it is there. */
export function useReturn(path: string): void {
  useEffect(() => {
    const text = sessionStorage.getItem(PLACE);
    if (!text) return;
    const wanted = JSON.parse(text) as { path: string; label: string };
    if (wanted.path !== path) return;
    const until = Date.now() + PATIENCE_MS;
    const timer = setInterval(() => {
      const controls = [...document.querySelectorAll<Control>("main input, main textarea, main select")];
      const found = controls.find((control) => labelOf(control) === wanted.label);
      if (!found && Date.now() < until) return;
      clearInterval(timer);
      sessionStorage.removeItem(PLACE);
      found?.focus();
    }, 100);
    return () => clearInterval(timer);
  }, [path]);
}

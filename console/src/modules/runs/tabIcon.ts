/** The tab's icon says how the run stands. */
import type { Shape } from "../../components/StatusShape";
import { toneOf } from "../../components/StatusShape";

const PATHS: Partial<Record<Shape, string>> = {
  ok: "M4 12.5l5 5L20 6.5",
  failed: "M6 6l12 12M18 6L6 18",
  rolling: "M19 12H6M11 6l-6 6 6 6",
  rolled: "M19 12H6M11 6l-6 6 6 6",
  person: "M9 6v12M15 6v12",
  warning: "M12 5v9M12 18v.5",
  unknown: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 18v.5",
};

export function setTabIcon(shape: Shape | null): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (!link) return;
  if (!shape) {
    link.href = "/icon.svg";
    return;
  }
  const styles = getComputedStyle(document.documentElement);
  const tone = toneOf(shape);
  const fill = styles.getPropertyValue(tone === "idle" || tone === "unk" ? `--${tone}` : `--${tone}-fill`).trim();
  const mark = PATHS[shape] ?? "M12 6a6 6 0 1 1-6 6";
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><circle cx="12" cy="12" r="11.5" fill="${fill}"/><path d="${mark}" fill="none" stroke="white" stroke-width="3" stroke-linecap="round" stroke-linejoin="round" transform="translate(2.4 2.4) scale(.8)"/></svg>`;
  link.href = `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

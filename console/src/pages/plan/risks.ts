/** How a risk looks that the server ranked, and by what it is known that the same was looked at. */
import type { ResourceRow } from "../../api/live/types";
import type { PlanRisk } from "../../api/queries/reviews";

export interface RiskLook {
  op: string;
  word: string;
  tone: "bad" | "warn" | "unk" | "ok" | "repl";
}

const LOOKS: Record<string, RiskLook> = {
  not_planned: { op: "unknown", word: "not planned", tone: "unk" },
  data: { op: "delete", word: "no way back in place", tone: "bad" },
  delete: { op: "delete", word: "delete", tone: "bad" },
  replace: { op: "replace", word: "new identity", tone: "repl" },
  public: { op: "update", word: "open to everybody", tone: "bad" },
  access: { op: "update", word: "who may do what", tone: "warn" },
};

export function lookOf(risk: PlanRisk): RiskLook {
  if (risk.kind === "unknown") return { op: "unknown", word: `${risk.count.toLocaleString("en")} unknown`, tone: "unk" };
  return LOOKS[risk.kind] ?? { op: "update", word: risk.kind.replaceAll("_", " "), tone: "warn" };
}

/** Short, and another one for other content. It proves nothing against somebody who wants to be deceived. */
export function digestOf(parts: string[]): string {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (const part of parts) {
    for (let index = 0; index <= part.length; index += 1) {
      // The end of a part is a character of its own, so that parts do not run into each other.
      const code = index < part.length ? part.charCodeAt(index) : 0x10ffff;
      a = Math.imul(a ^ code, 2654435761);
      b = Math.imul(b ^ code, 1597334677);
    }
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return (b >>> 0).toString(16).padStart(8, "0") + (a >>> 0).toString(16).padStart(8, "0");
}

export function riskDigest(risk: PlanRisk): string {
  return digestOf([risk.title, risk.about]);
}

/** Of what a unit would change; the order in which programs ask for it does not count. */
export function unitDigest(rows: ResourceRow[]): string {
  const lines = rows.map((row) => JSON.stringify([row.urn, row.op, (row.properties ?? []).map((one) => [one.path, one.old ?? null, one.new ?? null, Boolean(one.unknown)])]));
  return digestOf(lines.sort());
}

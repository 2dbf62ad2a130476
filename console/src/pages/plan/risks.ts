/** What of a plan has to be read first: what goes away before what is replaced, before what failed to be planned. */
import type { UnitModel } from "../../api/live/model";
import { byKind } from "../../components/Operations";

export interface Risk {
  key: string;
  unit: string;
  op: string;
  title: string;
  about: string;
  word: string;
  tone: "bad" | "warn" | "unk";
}

const many = (count: number, word: string) => `${count} ${word}${count === 1 ? "" : "s"}`;

export function risksOf(units: UnitModel[]): Risk[] {
  const risks: (Risk & { rank: number })[] = [];
  for (const unit of units) {
    const kinds = byKind(unit.resources.by_op);
    const deletes = kinds["delete"] ?? 0;
    const replaces = kinds["replace"] ?? 0;
    if (unit.status === "failed") {
      risks.push({
        key: `${unit.name}!`,
        unit: unit.name,
        op: "same",
        title: `${unit.name} could not be planned.`,
        about: unit.message?.split("\n")[0] ?? "",
        word: "not planned",
        tone: "unk",
        rank: 0,
      });
    }
    if (deletes > 0) {
      risks.push({
        key: `${unit.name}-`,
        unit: unit.name,
        op: "delete",
        title: `${many(deletes, "resource")} would be deleted.`,
        about: `In ${unit.name}. What is in them goes as well.`,
        word: "delete",
        tone: "bad",
        rank: 1,
      });
    }
    if (replaces > 0) {
      risks.push({
        key: `${unit.name}±`,
        unit: unit.name,
        op: "replace",
        title: `${many(replaces, "resource")} would be replaced.`,
        about: `In ${unit.name}. Something new takes their place, with a new identity.`,
        word: "replace",
        tone: "warn",
        rank: 2,
      });
    }
  }
  return risks.sort((a, b) => a.rank - b.rank);
}

/**
 * What of a plan has to be read first: what could not be planned, what goes away, what is replaced, who gets access to
 * what, and what nobody can know before the run.
 */
import type { UnitModel } from "../../api/live/model";
import type { ResourceRow } from "../../api/live/types";
import { byKind, kindOf } from "../../components/Operations";

export interface Risk {
  key: string;
  unit: string;
  op: string;
  title: string;
  about: string;
  word: string;
  tone: "bad" | "warn" | "unk" | "ok" | "repl";
}

const many = (count: number, word: string) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

/** Types that hold what cannot be made again. */
const DATA = /:(rds|dynamodb|efs|ebs|elasticache|documentdb|redshift|s3|sqs)\/|database|bucket|volume/i;
/** Types that say who may do or reach what. */
const ACCESS = /:iam\/|policy|securitygroup|firewall|networkacl/i;

function named(rows: ResourceRow[]): string {
  const names = rows.slice(0, 3).map((row) => row.name);
  return rows.length > 3 ? `${names.join(", ")} and ${rows.length - 3} more` : names.join(", ");
}

export function risksOf(units: UnitModel[], rows: Map<string, ResourceRow[]> = new Map()): Risk[] {
  const ranked: (Risk & { rank: number })[] = [];
  for (const unit of units) {
    const own = rows.get(unit.name) ?? [];
    const kinds = byKind(unit.resources.by_op);
    const of = (kind: string) => own.filter((row) => kindOf(row.op) === kind && row.op !== "delete-replaced");
    const add = (rank: number, risk: Omit<Risk, "unit" | "key">) =>
      ranked.push({ ...risk, key: `${unit.name}:${rank}`, unit: unit.name, rank });
    if (unit.status === "failed") {
      add(0, { op: "same", title: `${unit.name} could not be planned.`, about: unit.message?.split("\n")[0] ?? "", word: "not planned", tone: "unk" });
    }
    const deleted = of("delete");
    const replaced = of("replace");
    const lost = [...deleted, ...replaced].filter((row) => DATA.test(row.type));
    if (lost.length > 0) {
      add(1, { op: deleted.some((row) => lost.includes(row)) ? "delete" : "replace", title: `Data goes in ${unit.name}.`, about: `${named(lost)}: what is in there is not in the new one.`, word: "no way back in place", tone: "bad" });
    }
    const deletes = kinds["delete"] ?? 0;
    if (deletes > 0) {
      add(2, { op: "delete", title: `${many(deletes, "resource")} would be deleted.`, about: `${deleted.length > 0 ? named(deleted) : "In"} ${deleted.length > 0 ? `in ${unit.name}` : unit.name}.`, word: "delete", tone: "bad" });
    }
    const replaces = kinds["replace"] ?? 0;
    if (replaces > 0) {
      const forced = [...new Set(replaced.flatMap((row) => (row.properties ?? []).filter((one) => one.replaces).map((one) => one.path)))];
      const why = forced.length > 0 ? ` Because of ${forced.slice(0, 3).join(", ")}.` : "";
      add(3, { op: "replace", title: `${many(replaces, "resource")} would be replaced.`, about: `${replaced.length > 0 ? `${named(replaced)} in ${unit.name}` : `In ${unit.name}`}.${why}`, word: "new identity", tone: "repl" });
    }
    const access = own.filter((row) => ACCESS.test(row.type) && ["update", "replace", "delete"].includes(kindOf(row.op)));
    if (access.length > 0) {
      add(4, { op: "update", title: `Access changes in ${unit.name}.`, about: `${named(access)}.`, word: "who may do what", tone: "warn" });
    }
  }
  const unknown = units.flatMap((unit) =>
    (rows.get(unit.name) ?? []).flatMap((row) => (row.properties ?? []).filter((one) => one.unknown).map(() => unit.name)),
  );
  const first = unknown[0];
  if (first) {
    ranked.push({
      key: "unknown",
      unit: first,
      op: "unknown",
      title: `${many(unknown.length, "value")} ${unknown.length === 1 ? "is" : "are"} not known yet.`,
      about: "They come from resources that this run creates, and are marked where they are used.",
      word: `${unknown.length.toLocaleString("en")} unknown`,
      tone: "unk",
      rank: 5,
    });
  }
  return ranked.sort((a, b) => a.rank - b.rank);
}

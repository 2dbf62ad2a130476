/** A plan as markdown, for tickets and auditors: complete, with every id. */
import type { UnitModel } from "../../api/live/model";
import type { ResourceRow } from "../../api/live/types";
import type { Run } from "../../api/queries/runs";
import { sideOf } from "./PropertyDiff";

interface Told {
  title: string;
  about: string;
}

export function planReport(run: Run, units: UnitModel[], rows: Map<string, ResourceRow[]>, risks: Told[]): string {
  const lines = [
    `## Plan ${run.number} for ${run.deployment} in ${run.environment}${run.rehearsal ? " (rehearsal)" : ""}`,
    "",
    `- run ${run.id}, asked for ${run.queued_at}, ended ${run.ended_at ?? "not yet"}`,
    ...risks.map((risk) => `- **${risk.title}** ${risk.about}`),
  ];
  for (const unit of units) {
    const own = rows.get(unit.name) ?? [];
    if (own.length === 0) continue;
    lines.push("", `### ${unit.name}`, "");
    for (const row of own) {
      lines.push(`- ${row.op} \`${row.urn}\``);
      for (const property of row.properties ?? []) {
        const marks = [property.replaces ? "forces replace" : "", property.unknown ? "not known yet" : ""].filter(Boolean);
        lines.push(`  - ${property.path}: ${sideOf(property, "old").text} → ${sideOf(property, "new").text}${marks.length > 0 ? ` (${marks.join(", ")})` : ""}`);
      }
    }
  }
  return lines.join("\n");
}

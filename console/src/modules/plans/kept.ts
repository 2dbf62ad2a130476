/** What a plan leaves as it is: properties of a resource that changes, and units that a change spares. */
import type { UnitModel } from "../../api/live/model";
import type { PropertyRow } from "../../api/live/types";

/** `tags` and `tags.team` are about the same: whichever of them changes, the other one is no proof that nothing does. */
function related(one: string, other: string): boolean {
  const below = (path: string, whole: string) => path.startsWith(`${whole}.`) || path.startsWith(`${whole}[`);
  return one === other || below(one, other) || below(other, one);
}

/** Those of all properties that no change is about. */
export function unchangedOf(all: PropertyRow[], changed: PropertyRow[]): PropertyRow[] {
  return all.filter((property) => !changed.some((change) => related(property.path, change.path)));
}

/** Units that use what this one gives and stay as they are. */
export function sparedBy(unit: string, units: UnitModel[]): string[] {
  const still = (one: UnitModel) => Object.entries(one.resources.by_op).every(([op, count]) => op === "same" || count === 0);
  return units.filter((one) => one.needs.includes(unit) && still(one) && (one.status === "skipped" || one.status === "succeeded")).map((one) => one.name);
}

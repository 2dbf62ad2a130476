/** Whether a plan still says what would happen: what was changed or run since it was made. */
import type { Deployment } from "../../api/queries/deployments";
import type { Run } from "../../api/queries/runs";

export interface SealItem {
  name: string;
  /** What stands beside it when it holds. */
  proof: string;
  /** What moved; nothing if it holds. */
  moved: string | null;
}

export function sealOf(plan: Run, deployment: Deployment | undefined, runs: Run[] | undefined): SealItem[] {
  const made = Date.parse(plan.ended_at ?? plan.began_at ?? plan.queued_at);
  const began = Date.parse(plan.began_at ?? plan.queued_at);
  const items: SealItem[] = [];
  if (deployment) {
    const changed = Date.parse(deployment.updated_at) > began;
    items.push({
      name: "Manifest",
      proof: `revision ${deployment.revision}`,
      moved: changed ? `It was saved as revision ${deployment.revision} after this plan was made.` : null,
    });
  }
  if (runs) {
    const others = runs.filter((run) => run.environment === plan.environment && run.action !== "preview" && run.rehearsal === plan.rehearsal);
    const since = others.find((run) => Date.parse(run.ended_at ?? run.queued_at) > made || run.status !== "ended");
    const last = others[0];
    items.push({
      name: "Start state",
      proof: last ? `after ${last.number}` : "empty",
      moved: since ? `${since.number} ${since.status === "ended" ? "ran" : "runs"} in ${plan.environment} since this plan was made.` : null,
    });
    const newer = runs.find((run) => run.environment === plan.environment && run.action === "preview" && run.rehearsal === plan.rehearsal && Date.parse(run.queued_at) > made);
    items.push({ name: "Newest plan", proof: plan.number, moved: newer ? `${newer.number} is a newer plan of the same environment.` : null });
  }
  return items;
}

/** The side of a plan: whether it still holds, what it would use up, what happens if it fails, and the button. */
import { useQuery } from "@tanstack/react-query";
import { Check, Lock, LockOpen } from "lucide-react";
import { useState } from "react";

import { effectiveQuery } from "../../api/queries/access";
import { deploymentQuery } from "../../api/queries/deployments";
import { runsQuery } from "../../api/queries/runs";
import type { Run, StartAct } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { CommandLine } from "../../components/Copy";
import { StatusShape } from "../../components/StatusShape";
import { StartRunDialog } from "../../modules/deployments/StartRun";
import { sealOf } from "../../modules/plans/moved";
import { useMay, usePlace } from "../../modules/shell/context";

/** How often it is looked at again whether something moved. */
const AGAIN_MS = 10_000;

interface Props {
  run: Run;
  tenant: string | undefined;
  /** Units and risks that nobody has ticked. */
  open: number;
  changing: number;
  /** Deletes and replacements: what going back cannot bring back as it was. */
  oneWay: number;
}

export function Decision({ run, tenant, open, changing, oneWay }: Props) {
  const [asked, setAsked] = useState<StartAct | null>(null);
  const may = useMay();
  const { tenant: here } = usePlace();
  const ended = run.status === "ended";
  const deployment = useQuery({ ...deploymentQuery(tenant, run.deployment), refetchInterval: AGAIN_MS });
  const runs = useQuery({ ...runsQuery(tenant, { deployment: run.deployment }), refetchInterval: AGAIN_MS });
  const quotas = useQuery({ ...effectiveQuery(here.id), enabled: may("tenant:definition:read") === null });
  const seal = ended ? sealOf(run, deployment.data, runs.data?.items) : [];
  const moved = seal.filter((item) => item.moved);
  const off =
    may("stack:instance:deploy") ??
    (!ended ? "The plan is not finished." : run.result !== "succeeded" ? "A plan that failed cannot be carried out." : changing === 0 ? "Nothing would change." : null);
  return (
    <aside className="plan-side" aria-label="Decision">
      <section>
        <h2 className="h2 row">
          {moved.length > 0 ? <LockOpen className="s c-warn" aria-hidden /> : <Lock className={ended ? "s c-ok" : "s mute"} aria-hidden />}
          {!ended ? "Not finished" : moved.length > 0 ? "Something moved since planning" : "Nothing moved since planning"}
        </h2>
        <p className="sec small">
          {moved.length > 0 ? "What would happen may differ from what is shown here. Plan again before you decide." : "Looked at again every 10 seconds while this page is open."}
        </p>
        <ul>
          {seal.map((item) => (
            <li key={item.name} className="seal">
              {item.moved ? <StatusShape shape="warning" label="moved" /> : <Check className="s c-ok" aria-label="holds" />}
              <span>{item.name}</span>
              <span className="mono mute trunc">{item.moved ? "moved" : item.proof}</span>
              {item.moved ? <span className="seal-why">{item.moved}</span> : null}
            </li>
          ))}
        </ul>
      </section>
      {quotas.data && quotas.data.quotas.length > 0 ? (
        <section>
          <h2 className="h2">Limits of this tenant</h2>
          {quotas.data.quotas.map((quota) => (
            <div key={quota.resource} className="quota">
              <span className="mute trunc">{quota.resource}</span>
              <meter min={0} max={Math.max(1, quota.quota)} value={quota.used} aria-label={`${quota.resource}: ${quota.used} of ${quota.quota}`} />
              <span className="num">
                {quota.used.toLocaleString("en")} of {quota.quota.toLocaleString("en")}
              </span>
            </div>
          ))}
        </section>
      ) : null}
      <section>
        <h2 className="h2">If it fails</h2>
        <p className="sec small">
          Each unit goes back to its state before the run, last first.{" "}
          {oneWay > 0 ? (
            <b className="c-bad">
              {oneWay === 1 ? "One resource" : `${oneWay} resources`} would be new, not the old {oneWay === 1 ? "one" : "ones"}:
            </b>
          ) : (
            "No resource is deleted or replaced, so every step has a way back."
          )}
          {oneWay > 0 ? " what is deleted or replaced is made again, without what was in it." : null}
        </p>
      </section>
      <section>
        <h2 className="h2">The same in a terminal</h2>
        <CommandLine command={`nimbus preview ${run.deployment} --environment ${run.environment}${run.rehearsal ? " --rehearse" : ""}`} />
      </section>
      <div className="plan-act">
        {moved.length > 0 ? (
          <div className="row">
            <Button kind="pri" size="full" off={may("component:preview")} onClick={() => setAsked("preview")}>
              Plan again…
            </Button>
            <Button size="full" off={off} onClick={() => setAsked("deploy")}>
              Deploy…
            </Button>
          </div>
        ) : (
          <Button kind="pri" size="full" off={off} onClick={() => setAsked("deploy")}>
            Deploy…
          </Button>
        )}
        <p className="mute small">{off ?? (open === 0 ? "Everything above was reviewed." : `${open} ${open === 1 ? "item" : "items"} above ${open === 1 ? "is" : "are"} not reviewed.`)}</p>
      </div>
      {asked ? <StartRunDialog act={asked} deployment={run.deployment} environment={run.environment} tenant={tenant} onClose={() => setAsked(null)} /> : null}
    </aside>
  );
}

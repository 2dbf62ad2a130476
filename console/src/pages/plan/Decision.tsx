/** The side of a plan: whether it still holds, what it would use up, what happens if it fails, and the button. */
import { useQuery } from "@tanstack/react-query";
import { Check, Lock, LockOpen } from "lucide-react";
import { useState } from "react";

import { effectiveQuery } from "../../api/queries/access";
import type { PlanReview } from "../../api/queries/reviews";
import type { Run, StartAct } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { CommandLine } from "../../components/Copy";
import { OpGlyph } from "../../components/Operations";
import { StatusShape } from "../../components/StatusShape";
import { StartRunDialog } from "../../modules/deployments/StartRun";
import { useMay, usePlace } from "../../modules/shell/context";

interface Props {
  run: Run;
  tenant: string | undefined;
  /** Units and risks that nobody has ticked. */
  open: number;
  changing: number;
  review: PlanReview | undefined;
}

export function Decision({ run, tenant, open, changing, review }: Props) {
  const [asked, setAsked] = useState<StartAct | null>(null);
  const may = useMay();
  const { tenant: here } = usePlace();
  const ended = run.status === "ended";
  const quotas = useQuery({ ...effectiveQuery(here.id), enabled: may("tenant:definition:read") === null });
  const seal = ended ? (review?.seal ?? []) : [];
  const oneWay = review?.forecast.one_way ?? [];
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
          {oneWay.length > 0 ? (
            <>
              <b className="c-bad">{oneWay.length === 1 ? "One step cannot be undone:" : `${oneWay.length} steps cannot be undone:`}</b> what is deleted or replaced is made again, without what was in it.
            </>
          ) : (
            "No resource is deleted or replaced, so every step has a way back."
          )}
        </p>
        {oneWay.length > 0 ? (
          <ul className="one-way">
            {oneWay.slice(0, 5).map((step) => (
              <li key={`${step.unit} ${step.urn}`} className="row small">
                <OpGlyph op={step.op} />
                <span className="trunc">{step.name}</span>
                <span className="mute trunc grow">{step.unit}</span>
                {step.data ? <span className="tag bad">holds data</span> : null}
              </li>
            ))}
            {oneWay.length > 5 ? <li className="mute small">and {oneWay.length - 5} more, marked below</li> : null}
          </ul>
        ) : null}
        {review && review.forecast.units.length > 1 ? <p className="mute small trunc" title={review.forecast.units.join(" → ")}>Back in this order: {review.forecast.units.join(" → ")}</p> : null}
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
              Deploy anew…
            </Button>
          </div>
        ) : (
          <Button kind="pri" size="full" off={off} onClick={() => setAsked("deploy")}>
            Deploy…
          </Button>
        )}
        <p className="mute small">{off ?? (open === 0 ? "Everything above was reviewed." : `${open} ${open === 1 ? "item" : "items"} above ${open === 1 ? "is" : "are"} not reviewed.`)}</p>
      </div>
      {asked ? (
        <StartRunDialog
          act={asked}
          deployment={run.deployment}
          environment={run.environment}
          tenant={tenant}
          // What moved is no longer what was planned: a deploy of it would be refused.
          {...(asked === "deploy" && moved.length === 0 ? { plan: run } : {})}
          onClose={() => setAsked(null)}
        />
      ) : null}
    </aside>
  );
}

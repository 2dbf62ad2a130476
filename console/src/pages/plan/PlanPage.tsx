/** `/plans/:id`: what a run would do, unit by unit and property by property, and the way to do it. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { ClipboardCopy, Link as LinkIcon } from "lucide-react";
import { useMemo, useState } from "react";

import { totalsOf } from "../../api/live/model";
import type { UnitModel } from "../../api/live/model";
import { reviewQuery } from "../../api/queries/reviews";
import type { PlanRisk } from "../../api/queries/reviews";
import { runQuery } from "../../api/queries/runs";
import type { Run } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { useCopy } from "../../components/Copy";
import { Counts, OpGlyph } from "../../components/Operations";
import { Failed, Skeleton } from "../../components/PageState";
import { StatusPill, StatusShape } from "../../components/StatusShape";
import { duration, timeOfDay } from "../../components/Time";
import { PlanWaits } from "../../modules/approvals/WaitsForApproval";
import { planReport } from "../../modules/plans/report";
import { CauseCard } from "../../modules/runs/CauseCard";
import { runLook } from "../../modules/runs/looks";
import { Rehearsal } from "../../modules/runs/RunTable";
import { useAllRows, usePart, useRunStore, useUnits } from "../../modules/runs/useRun";
import { usePlace } from "../../modules/shell/context";
import { useCrumbs, useFeedIndicator } from "../../modules/shell/frame";
import { usePageKeys } from "../../modules/shell/keys";
import { NotFound } from "../SignedIn";
import { Decision } from "./Decision";
import { PlanChanges, SeenBy } from "./PlanChanges";
import { PlanGraph } from "./PlanGraph";
import { lookOf, riskDigest, unitDigest } from "./risks";
import { useMarks } from "./useMarks";
import type { Marks } from "./useMarks";

export function PlanPage() {
  const { run = "" } = useParams({ strict: false }) as { run?: string };
  const { named } = usePlace();
  const found = useQuery(runQuery(named, run));
  if (found.isError && (found.error as { status?: number }).status === 404) return <NotFound />;
  if (found.isError) return <div className="page"><Failed what="The plan was not read" error={found.error} onRetry={() => void found.refetch()} /></div>;
  if (!found.data) return <div className="page"><Skeleton /></div>;
  return <Plan key={run} run={found.data} tenant={named} />;
}

export function changes(unit: UnitModel): number {
  return Object.entries(unit.resources.by_op).reduce((sum, [op, count]) => (op === "same" ? sum : sum + count), 0);
}

function flip(set: Set<string>, key: string): Set<string> {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

function Plan({ run: first, tenant }: { run: Run; tenant: string | undefined }) {
  const store = useRunStore(first.id, tenant);
  const { me } = usePlace();
  usePart(store, "run");
  usePart(store, "totals");
  usePart(store, "freshness");
  const run = store.model.run ?? first;
  const units = useUnits(store);
  const changing = units.filter((unit) => changes(unit) > 0);
  const rows = useAllRows(store, run.id, tenant, changing.map((unit) => unit.name));
  const search = useSearch({ strict: false }) as { unit?: string; find?: string };
  const navigate = useNavigate();
  const marks = useMarks(tenant, run.id, me.user.id);
  const ended = run.status === "ended";
  // While it is being planned the ranking follows every few events, and once it is over there is one more look.
  const review = useQuery(reviewQuery(tenant, run.id, ended ? store.model.seq : -1 - Math.floor(store.model.seq / 200)));
  const digests = useMemo(() => new Map([...rows].map(([unit, own]) => [unit, unitDigest(own)])), [rows]);
  const [toggled, setToggled] = useState<Set<string>>(new Set());
  const [whole, setWhole] = useState<Set<string>>(new Set());
  const [copied, copy] = useCopy();
  const [linked, copyLink] = useCopy();
  useFeedIndicator({ freshness: store.freshness, since: store.lastHeard });
  useCrumbs([
    { label: "Deployments", to: "/deployments" },
    { label: run.deployment, to: `/deployments/${run.deployment}` },
    { label: run.environment, to: `/deployments/${run.deployment}/${run.environment}` },
    { label: `Plan ${run.number}` },
  ]);
  const totals = totalsOf(store.model);
  const isMarked = (unit: string) => marks.has(`unit:${unit}`, digests.get(unit) ?? "");
  const markUnit = (unit: string, on: boolean) => marks.set(`unit:${unit}`, digests.get(unit) ?? "", on);
  const selected = search.unit ?? changing[0]?.name;
  const set = (change: { unit?: string | undefined; find?: string | undefined }) =>
    void navigate({ to: `/plans/${run.id}`, search: ((before: object) => ({ ...before, ...change })) as never, replace: true });
  // The chosen unit is open; the others are as somebody left them.
  const open = new Set([...toggled].filter((name) => name !== selected));
  if (selected && !toggled.has(selected)) open.add(selected);
  const select = (unit: string) => {
    set({ unit });
    setToggled((before) => new Set([...before].filter((name) => name !== unit)));
    requestAnimationFrame(() => document.getElementById(`change-${unit}`)?.scrollIntoView({ block: "nearest" }));
  };
  const step = (by: number) => {
    const names = changing.map((unit) => unit.name);
    const next = names[Math.min(names.length - 1, Math.max(0, names.indexOf(selected ?? "") + by))];
    if (next) select(next);
  };
  usePageKeys({
    j: () => step(1),
    k: () => step(-1),
    x: () => {
      if (selected) markUnit(selected, !isMarked(selected));
    },
    "/": () => window.dispatchEvent(new Event("nimbus:filter")),
  });
  const look = runLook(run);
  const risks = review.data?.risks ?? [];
  const unreviewed = risks.filter((risk) => !marks.has(risk.key, riskDigest(risk))).length + changing.filter((unit) => !isMarked(unit.name)).length;
  const unchanged = units.filter((unit) => unit.status === "skipped").length;
  return (
    <div className="plan-grid">
      <div className="plan-main">
        <header className="hd">
          <div className="row wrap">
            <StatusPill shape={look.shape}>{run.status === "ended" && run.result === "succeeded" ? "Ready to decide" : look.word}</StatusPill>
            <h1 className="trunc">
              Plan for {run.deployment} in {run.environment}
            </h1>
            <span className="tag mono">{run.number}</span>
            {run.rehearsal ? <Rehearsal /> : null}
            <span className="grow" />
            <Button size="sm" kind="ghost" icon={LinkIcon} title="Copy a link to this plan" onClick={() => copyLink(location.href)}>
              {linked ? "Copied" : "Link"}
            </Button>
            <Button size="sm" kind="ghost" icon={ClipboardCopy} title="Copy the plan as markdown" onClick={() => copy(planReport(run, units, rows, risks))}>
              {copied ? "Copied" : "Markdown"}
            </Button>
          </div>
          <div className="meta">
            <span>
              asked by <b>{store.model.requestedByName ?? "a member of this tenant"}</b> at <b className="num">{timeOfDay(run.queued_at)}</b>
            </span>
            <span>
              deployment <b className="mono">{run.deployment}</b>
            </span>
            {run.rehearsal ? <span>nothing real is touched</span> : null}
          </div>
          <dl className="sum">
            <div>
              <dt>Units that change</dt>
              <dd className="num">
                {changing.length} <small>of {units.length}</small>
              </dd>
            </div>
            <div>
              <dt>Resources</dt>
              <dd>
                <Counts counts={totals.byOp} />
                {unchanged > 0 ? <small>{unchanged === 1 ? "1 unit unchanged" : `${unchanged} units unchanged`}</small> : null}
              </dd>
            </div>
            <div>
              <dt>Warnings</dt>
              <dd className="num">
                {store.model.warnings === 0 ? "none" : <span className="tag warn">{store.model.warnings === 1 ? "1 warning" : `${store.model.warnings} warnings`}</span>}
              </dd>
            </div>
            {store.model.usualSeconds ? (
              <div>
                <dt>Usually takes</dt>
                <dd className="num">{duration(store.model.usualSeconds)}</dd>
              </div>
            ) : null}
          </dl>
        </header>
        <PlanWaits run={run} />
        <CauseCard store={store} tenant={tenant} onSelect={select} />
        <div className="plan-body">
          <ReadFirst risks={risks} marks={marks} ended={ended && review.isSuccess} onSelect={select} />
          <PlanGraph store={store} environment={run.environment} units={units} selected={selected} onSelect={select} />
          <PlanChanges
            place={{ deployment: run.deployment, environment: run.environment, rehearsal: run.rehearsal }}
            all={units}
            units={changing}
            rows={rows}
            reviewed={isMarked}
            seenBy={(unit) => marks.others(`unit:${unit}`, digests.get(unit) ?? "")}
            onReviewed={markUnit}
            selected={selected}
            open={open}
            onToggle={(unit) => setToggled(flip(toggled, unit))}
            whole={whole}
            onWhole={(unit) => setWhole(flip(whole, unit))}
            find={search.find ?? ""}
            onFind={(find) => set({ find: find || undefined })}
          />
        </div>
      </div>
      <Decision run={run} tenant={tenant} open={unreviewed} changing={changing.length} review={review.data} />
    </div>
  );
}

function ReadFirst({ risks, marks, ended, onSelect }: { risks: PlanRisk[]; marks: Marks; ended: boolean; onSelect: (unit: string) => void }) {
  const done = risks.filter((risk) => marks.has(risk.key, riskDigest(risk))).length;
  return (
    <section className="section" aria-label="Read these first">
      <div className="row">
        <h2 className="h2">Read these first</h2>
        {risks.length > 0 ? (
          <span className="mute small num">
            {done} of {risks.length} reviewed
          </span>
        ) : null}
      </div>
      {risks.length === 0 ? (
        <p className="card risk sec">
          <StatusShape shape={ended ? "ok" : "running"} />
          {ended ? "Nothing is deleted or replaced, and every value is known." : "Units are still being planned."}
        </p>
      ) : (
        <ul className="card">
          {risks.map((risk) => {
            const look = lookOf(risk);
            const digest = riskDigest(risk);
            return (
            <li key={risk.key} className="risk">
              {look.op === "unknown" ? <StatusShape shape="unknown" /> : <OpGlyph op={look.op} />}
              <span className="grow trunc" title={`${risk.title} ${risk.about}`}>
                <b>{risk.title.replace(/[.:]?$/, ".")}</b> <span className="sec">{risk.about}</span>
              </span>
              <SeenBy people={marks.others(risk.key, digest)} />
              <span className={`tag ${look.tone}`}>{look.word}</span>
              <button type="button" className="link" onClick={() => onSelect(risk.unit)}>
                {risk.unit}
              </button>
              <label className="tick seen">
                <input type="checkbox" checked={marks.has(risk.key, digest)} onChange={(event) => marks.set(risk.key, digest, event.target.checked)} />
                <span className="small">
                  Reviewed<span className="hidden-text"> {risk.title}</span>
                </span>
              </label>
            </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}

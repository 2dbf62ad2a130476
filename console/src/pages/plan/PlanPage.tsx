/** `/plans/:id`: what a run would do, unit by unit, and the way to do it. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";

import { totalsOf } from "../../api/live/model";
import type { UnitModel } from "../../api/live/model";
import type { RunStore } from "../../api/live/store";
import { runQuery } from "../../api/queries/runs";
import type { Run } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { CommandLine } from "../../components/Copy";
import { Counts, OpGlyph, byKind } from "../../components/Operations";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusPill, StatusShape } from "../../components/StatusShape";
import { duration } from "../../components/Time";
import { StartRunDialog } from "../../modules/deployments/StartRun";
import { CauseCard } from "../../modules/runs/CauseCard";
import { ResourceTree } from "../../modules/runs/ResourceTree";
import { runLook, unitLook } from "../../modules/runs/looks";
import { Rehearsal } from "../../modules/runs/RunTable";
import { usePart, useRows, useRunStore, useUnit, useUnits } from "../../modules/runs/useRun";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs, useFeedIndicator } from "../../modules/shell/frame";
import { NotFound } from "../SignedIn";
import { risksOf } from "./risks";

export function PlanPage() {
  const { run = "" } = useParams({ strict: false }) as { run?: string };
  const { named } = usePlace();
  const found = useQuery(runQuery(named, run));
  if (found.isError && (found.error as { status?: number }).status === 404) return <NotFound />;
  if (found.isError) return <div className="page"><Failed what="The plan was not read" error={found.error} onRetry={() => void found.refetch()} /></div>;
  if (!found.data) return <div className="page"><Skeleton /></div>;
  return <Plan key={run} run={found.data} tenant={named} />;
}

function Plan({ run: first, tenant }: { run: Run; tenant: string | undefined }) {
  const store = useRunStore(first.id, tenant);
  usePart(store, "run");
  usePart(store, "totals");
  usePart(store, "freshness");
  const run = store.model.run ?? first;
  const units = useUnits(store);
  const totals = totalsOf(store.model);
  const search = useSearch({ strict: false }) as { unit?: string };
  const navigate = useNavigate();
  const [reviewed, setReviewed] = useReviewed(run.id);
  useFeedIndicator({ freshness: store.freshness, since: store.lastHeard });
  useCrumbs([
    { label: "Deployments", to: "/deployments" },
    { label: run.deployment, to: `/deployments/${run.deployment}` },
    { label: `Plan ${run.number}` },
  ]);
  const changing = units.filter((unit) => changes(unit) > 0);
  const selected = search.unit ?? changing[0]?.name;
  const select = (unit: string) => void navigate({ to: `/plans/${run.id}`, search: { unit } as never, replace: true });
  const look = runLook(run);
  const risks = risksOf(units);
  return (
    <div className="plan-grid">
      <div className="page">
        <div className="page-head">
          <StatusPill shape={look.shape}>{run.status === "ended" && run.result === "succeeded" ? "Ready to decide" : look.word}</StatusPill>
          <h1>
            Plan for {run.deployment} in {run.environment}
          </h1>
          <span className="tag mono">{run.number}</span>
          {run.rehearsal ? <Rehearsal /> : null}
        </div>
        <dl className="figures">
          <div>
            <dt>Units that change</dt>
            <dd className="num">
              {changing.length} <span className="mute small">of {units.length}</span>
            </dd>
          </div>
          <div>
            <dt>Resources</dt>
            <dd>
              <Counts counts={totals.byOp} />
            </dd>
          </div>
          {store.model.usualSeconds ? (
            <div>
              <dt>Usually takes</dt>
              <dd className="num">{duration(store.model.usualSeconds)}</dd>
            </div>
          ) : null}
        </dl>
        <CauseCard store={store} onSelect={select} />
        <section className="section" aria-label="Read these first">
          <h2>Read these first</h2>
          {risks.length === 0 ? (
            <p className="mute">{run.status === "ended" ? "Nothing is deleted or replaced." : "Units are still being planned."}</p>
          ) : (
            <ul className="card">
              {risks.map((risk) => (
                <li key={risk.key} className="risk">
                  <OpGlyph op={risk.op} />
                  <span className="grow">
                    <b>{risk.title}</b> <span className="sec">{risk.about}</span>
                  </span>
                  <span className={`tag ${risk.tone}`}>{risk.word}</span>
                  <button type="button" className="link" onClick={() => select(risk.unit)}>
                    {risk.unit}
                  </button>
                </li>
              ))}
            </ul>
          )}
        </section>
        <section className="section" aria-label="Whole graph">
          <h2>
            Whole graph <span className="mute">{units.length} units in dependency order</span>
          </h2>
          <div className="card matrix">
            {units.map((unit) => (
              <MatrixCell key={unit.name} store={store} name={unit.name} selected={unit.name === selected} onSelect={select} />
            ))}
            {units.length === 0 ? <p className="mute">Units appear as they are planned.</p> : null}
          </div>
        </section>
        {selected ? (
          <Changes store={store} run={run.id} tenant={tenant} unit={selected} reviewed={reviewed.has(selected)} onReviewed={(on) => setReviewed(selected, on)} />
        ) : (
          <Empty title={run.status === "ended" ? "Nothing changes" : "Planning"} />
        )}
      </div>
      <Decision run={run} tenant={tenant} units={changing} reviewed={reviewed} />
    </div>
  );
}

export function changes(unit: UnitModel): number {
  return Object.entries(unit.resources.by_op).reduce((sum, [op, count]) => (op === "same" ? sum : sum + count), 0);
}

const BOXES: [string, string][] = [["delete", "d"], ["replace", "x"], ["update", "u"], ["create", "c"]];

function MatrixCell({ store, name, selected, onSelect }: { store: RunStore; name: string; selected: boolean; onSelect: (unit: string) => void }) {
  const unit = useUnit(store, name);
  if (!unit) return null;
  const kinds = byKind(unit.resources.by_op);
  const box = BOXES.find(([kind]) => (kinds[kind] ?? 0) > 0)?.[1] ?? "";
  return (
    <button type="button" className={box} aria-pressed={selected} onClick={() => onSelect(name)}>
      <span className="row" style={{ gap: 5 }}>
        <StatusShape shape={unitLook(unit).shape} label={unitLook(unit).word} />
        <span className="b">{name}</span>
      </span>
      <Counts counts={unit.resources.by_op} />
    </button>
  );
}

interface ChangesProps {
  store: RunStore;
  run: string;
  tenant: string | undefined;
  unit: string;
  reviewed: boolean;
  onReviewed: (on: boolean) => void;
}

function Changes({ store, run, tenant, unit: name, reviewed, onReviewed }: ChangesProps) {
  const unit = useUnit(store, name);
  const rows = useRows(store, run, tenant, name);
  const [find, setFind] = useState("");
  return (
    <section className="section" aria-label={`Changes of ${name}`}>
      <div className="row wrap">
        <h2 className="h2">{name}</h2>
        {unit ? <Counts counts={unit.resources.by_op} /> : null}
        {unit && unit.needs.length > 0 ? <span className="mute">after {unit.needs.join(", ")}</span> : null}
        <span className="grow" />
        <input className="input sm" style={{ width: 200 }} type="search" placeholder="Filter by name or type" aria-label="Filter changes" value={find} onChange={(event) => setFind(event.target.value)} />
        <label className="tick">
          <input type="checkbox" checked={reviewed} onChange={(event) => onReviewed(event.target.checked)} />
          <span>Reviewed</span>
        </label>
      </div>
      <div className="card" style={{ height: Math.min(420, Math.max(80, rows.length * 24 + 12)), display: "flex" }}>
        <ResourceTree rows={rows} all={false} find={find} />
      </div>
      {unit?.reason ? <p className="mute">Why it would run: {unit.reason}</p> : null}
    </section>
  );
}

function Decision({ run, tenant, units, reviewed }: { run: Run; tenant: string | undefined; units: UnitModel[]; reviewed: Set<string> }) {
  const [asked, setAsked] = useState(false);
  const may = useMay();
  const open = units.filter((unit) => !reviewed.has(unit.name)).length;
  const off =
    may("stack:instance:deploy") ??
    (run.status !== "ended" ? "The plan is not finished." : run.result !== "succeeded" ? "A plan that failed cannot be carried out." : null);
  return (
    <aside className="plan-side" aria-label="Decision">
      <section>
        <h2 className="h2">Decision</h2>
        <p className="sec">{open === 0 ? "Every unit that changes was reviewed." : `${open} of ${units.length} units that change are not reviewed.`}</p>
        <Button kind="pri" size="full" off={off} onClick={() => setAsked(true)}>
          Deploy…
        </Button>
        {off ? <p className="mute small">{off}</p> : null}
      </section>
      <section>
        <h2 className="h2">If it fails</h2>
        <p className="sec">Each unit goes back to its state before the run, last first. You choose when you deploy.</p>
      </section>
      <section>
        <h2 className="h2">The same in a terminal</h2>
        <CommandLine command={`nimbus preview ${run.deployment} --environment ${run.environment}${run.rehearsal ? " --rehearse" : ""}`} />
      </section>
      {asked ? <StartRunDialog act="deploy" deployment={run.deployment} environment={run.environment} tenant={tenant} onClose={() => setAsked(false)} /> : null}
    </aside>
  );
}

/** Review marks of this person on this machine. */
function useReviewed(run: string): [Set<string>, (unit: string, on: boolean) => void] {
  const place = `nimbus.reviewed.${run}`;
  const [marks, setMarks] = useState<Set<string>>(() => new Set(JSON.parse(localStorage.getItem(place) ?? "[]") as string[]));
  useEffect(() => localStorage.setItem(place, JSON.stringify([...marks])), [place, marks]);
  const mark = (unit: string, on: boolean) => {
    const next = new Set(marks);
    if (on) next.add(unit);
    else next.delete(unit);
    setMarks(next);
  };
  return [marks, mark];
}

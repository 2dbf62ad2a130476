/** One program in one environment: what it made, what it gives to others, why it ran, and what it needs. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";

import { runsQuery } from "../../api/queries/runs";
import type { Run } from "../../api/queries/runs";
import type { StatePlace } from "../../api/queries/states";
import { Segmented, Tabs } from "../../components/Choice";
import { CommandLine, CopyId } from "../../components/Copy";
import { Counts } from "../../components/Operations";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusPill } from "../../components/StatusShape";
import { Time, duration } from "../../components/Time";
import { actionWord, unitLook } from "../../modules/runs/looks";
import { Rehearsal, runAddress } from "../../modules/runs/RunTable";
import { ResourceTree } from "../../modules/runs/ResourceTree";
import { useRows, useRunStore, useUnit, useUnits } from "../../modules/runs/useRun";
import { usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { Repair } from "../../modules/states/Repair";
import { Outputs, StateResources, unitAddress } from "../../modules/states/StateTables";
import { Versions } from "../../modules/states/Versions";

type Tab = "resources" | "outputs" | "versions" | "repair" | "why" | "changes";
type Kind = "real" | "rehearsal";

export function UnitPage() {
  const params = useParams({ strict: false }) as { deployment?: string; environment?: string; unit?: string };
  const [deployment, environment, unit] = [params.deployment ?? "", params.environment ?? "", params.unit ?? ""];
  const search = useSearch({ strict: false }) as { tab?: Tab; kind?: Kind; from?: string; to?: string };
  const navigate = useNavigate();
  const { named } = usePlace();
  const runs = useQuery(runsQuery(named, { deployment, environment }));
  useCrumbs([
    { label: "Deployments", to: "/deployments" },
    { label: deployment, to: `/deployments/${deployment}` },
    { label: environment, to: `/deployments/${deployment}/${environment}` },
    { label: unit },
  ]);
  const tab = search.tab ?? "resources";
  const kind = search.kind ?? "real";
  const place: StatePlace = { deployment, environment, rehearsal: kind === "rehearsal" };
  const own = runs.data?.items.filter((run) => run.action !== "preview" && run.rehearsal === place.rehearsal) ?? [];
  const newest = own.find((run) => !run.problem) ?? own[0];
  const set = (change: object) =>
    void navigate({ to: unitAddress(place, unit).to, search: ((before: object) => ({ ...before, ...change })) as never, replace: true });
  const flag = place.rehearsal ? " --rehearse" : "";
  return (
    <div className="page">
      <div className="page-head">
        <h1>{unit}</h1>
        <CopyId text={`${deployment}-${unit}-${environment}`} label={`${deployment}-${unit}-${environment}`} />
        {newest ? <UnitStatus run={newest} unit={unit} /> : null}
        <span className="grow" />
        <Segmented
          label="Which cloud"
          value={kind}
          options={[
            { value: "real", label: "Real" },
            { value: "rehearsal", label: "Rehearsal" },
          ]}
          onChange={(value) => set({ kind: value === "real" ? undefined : value })}
        />
      </div>
      <Tabs
        label="Unit"
        panel="unit-page-panel"
        value={tab}
        options={[
          { value: "resources", label: "Resources" },
          { value: "outputs", label: "Outputs" },
          { value: "versions", label: "Versions" },
          { value: "repair", label: "Journal and repair" },
          { value: "why", label: "Why and needs" },
          { value: "changes", label: "Last changes" },
        ]}
        onChange={(value) => set({ tab: value === "resources" ? undefined : value })}
      />
      <div id="unit-page-panel" role="tabpanel" aria-labelledby={`unit-page-panel-${tab}`} className="col">
        {runs.isError ? <Failed what="The unit was not read" error={runs.error} onRetry={() => void runs.refetch()} /> : null}
        {tab === "resources" ? <StateResources place={place} unit={unit} /> : null}
        {tab === "outputs" ? <Outputs place={place} unit={unit} /> : null}
        {tab === "versions" ? <Versions place={place} unit={unit} from={search.from} to={search.to} onChoose={(from, to) => set({ from, to })} /> : null}
        {tab === "repair" ? <Repair place={place} unit={unit} /> : null}
        {tab === "why" || tab === "changes" ? (
          runs.isPending ? (
            <Skeleton rows={3} />
          ) : newest ? (
            <LastRun run={newest} unit={unit} place={place} form={tab} />
          ) : (
            <Empty title="It has not run here">Nothing was {place.rehearsal ? "rehearsed" : "deployed"} in {environment} yet.</Empty>
          )
        ) : null}
      </div>
      <section className="section" aria-label="In a terminal">
        <h2>The same in a terminal</h2>
        <CommandLine command={`nimbus why ${deployment} ${unit} --environment ${environment}${flag}`} />
      </section>
    </div>
  );
}

function UnitStatus({ run, unit: name }: { run: Run; unit: string }) {
  const { named } = usePlace();
  const store = useRunStore(run.id, named);
  const unit = useUnit(store, name);
  if (!unit) return null;
  return <StatusPill shape={unitLook(unit).shape}>{unitLook(unit).word}</StatusPill>;
}

function LastRun({ run, unit: name, place, form }: { run: Run; unit: string; place: StatePlace; form: "why" | "changes" }) {
  const { named } = usePlace();
  const store = useRunStore(run.id, named);
  useUnits(store);
  const unit = useUnit(store, name);
  const rows = useRows(store, run.id, named, name);
  if (!unit) return store.model.run ? <Empty title="It was not part of the last run">{run.number} had no unit of this name.</Empty> : <Skeleton rows={3} />;
  const links = (names: string[]) =>
    names.length === 0
      ? "nothing"
      : names.map((other) => (
          <Link key={other} {...(unitAddress(place, other) as { to: string })} className="link">
            {other}
          </Link>
        ));
  if (form === "changes") {
    return (
      <div className="card tree-box">
        <ResourceTree rows={rows} all={false} find="" />
      </div>
    );
  }
  return (
    <dl className="pairs card pad-grid">
      <dt>Last run</dt>
      <dd className="row wrap">
        <Link to={runAddress(run)} search={{ unit: name } as never} className="link">
          {actionWord(run.action)} {run.number}
        </Link>
        <Time at={unit.ended_at ?? unit.started_at ?? run.queued_at} />
        {run.rehearsal ? <Rehearsal /> : null}
      </dd>
      <dt>Why it ran</dt>
      <dd>{unit.reason ?? (unit.status === "skipped" ? "nothing that it depends on changed" : "–")}</dd>
      <dt>Changes</dt>
      <dd>
        <Counts counts={unit.changes ?? unit.resources.by_op} />
      </dd>
      <dt>Needs</dt>
      <dd className="row wrap">{links(unit.needs)}</dd>
      <dt>Needed by</dt>
      <dd className="row wrap">{links(unit.needed_by ?? [])}</dd>
      <dt>Took</dt>
      <dd>
        {unit.seconds !== null && unit.seconds !== undefined ? duration(unit.seconds) : "–"}
        {unit.usual_seconds ? <span className="mute">, usually {duration(unit.usual_seconds)}</span> : null}
      </dd>
      {unit.message ? (
        <>
          <dt>It said</dt>
          <dd>
            <pre className="text">{unit.message}</pre>
          </dd>
        </>
      ) : null}
    </dl>
  );
}

/** A deployment in one environment: how it stands, its units, resources, outputs and runs, and what can be done. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Lock } from "lucide-react";
import { useState } from "react";

import { environmentsQuery } from "../../api/queries/deployments";
import { runsQuery } from "../../api/queries/runs";
import type { Run, StartAct } from "../../api/queries/runs";
import type { StatePlace } from "../../api/queries/states";
import { Button } from "../../components/Button";
import { Segmented, Tabs } from "../../components/Choice";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusPill, StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { StartRunDialog } from "../../modules/deployments/StartRun";
import { actionWord, runLook } from "../../modules/runs/looks";
import { RunTable, runAddress } from "../../modules/runs/RunTable";
import { usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { Outputs, StateResources } from "../../modules/states/StateTables";
import { EnvironmentUnits } from "./EnvironmentUnits";
import { isProduction, useActOff } from "../deployment/DeploymentPage";
import { NotFound } from "../SignedIn";

const ACTS: [StartAct, string][] = [
  ["deploy", "Deploy…"],
  ["preview", "Plan…"],
  ["refresh", "Refresh…"],
  ["rollback", "Roll back…"],
  ["destroy", "Destroy…"],
];

type Tab = "units" | "resources" | "outputs" | "runs";
type Kind = "real" | "rehearsal";

export function EnvironmentPage() {
  const params = useParams({ strict: false }) as { deployment?: string; environment?: string };
  const [id, name] = [params.deployment ?? "", params.environment ?? ""];
  const { named } = usePlace();
  const search = useSearch({ strict: false }) as { tab?: Tab; kind?: Kind };
  const navigate = useNavigate();
  const environments = useQuery(environmentsQuery(named, id));
  const runs = useQuery(runsQuery(named, { deployment: id, environment: name }));
  const [asked, setAsked] = useState<StartAct | null>(null);
  const environment = environments.data?.find((one) => one.name === name);
  const off = useActOff(environment);
  useCrumbs([{ label: "Deployments", to: "/deployments" }, { label: id, to: `/deployments/${id}` }, { label: name }]);
  if (environments.isPending) return <div className="page"><Skeleton /></div>;
  if (environments.isError) {
    if ((environments.error as { status?: number }).status === 404) return <NotFound />;
    return <div className="page"><Failed what="The environment was not read" error={environments.error} onRetry={() => void environments.refetch()} /></div>;
  }
  if (!environment) return <NotFound />;
  const tab = search.tab ?? "units";
  const last = environment.last_run;
  const acts = runs.data?.items.filter((run) => run.action !== "preview") ?? [];
  // What was practised and what is real are two worlds; the one that was touched last is shown first.
  const kind: Kind = search.kind ?? ((acts[0] ?? last)?.rehearsal ? "rehearsal" : "real");
  const place: StatePlace = { deployment: id, environment: name, rehearsal: kind === "rehearsal" };
  const own = acts.filter((run) => run.rehearsal === place.rehearsal);
  // One that was refused before it planned says nothing about units.
  const newest = own.find((run) => !run.problem) ?? own[0];
  const look = last ? runLook(last) : null;
  const set = (change: object) => void navigate({ to: `/deployments/${id}/${name}`, search: ((before: object) => ({ ...before, ...change })) as never, replace: true });
  return (
    <div className="page">
      <div className="page-head">
        <h1 className="row">
          {isProduction(name) ? <Lock className="s lock" aria-label="production" /> : null}
          {id} in {name}
        </h1>
        {look ? <StatusPill shape={look.shape}>{look.word}</StatusPill> : <span className="tag">not deployed</span>}
        <span className="grow" />
        {ACTS.map(([act, label]) => (
          <Button key={act} kind={act === "deploy" ? "pri" : act === "destroy" ? "danger" : "ghost"} off={off(act)} onClick={() => setAsked(act)}>
            {label}
          </Button>
        ))}
      </div>
      <Facts account={environment.account} region={environment.region} newest={newest} runs={acts} kind={kind} />
      <div className="row wrap">
        <Tabs
          label="Environment"
          panel="environment-panel"
          value={tab}
          options={[
            { value: "units", label: "Units" },
            { value: "resources", label: "Resources" },
            { value: "outputs", label: "Outputs" },
            { value: "runs", label: "Runs", count: runs.data?.items.length },
          ]}
          onChange={(value) => set({ tab: value === "units" ? undefined : value })}
        />
        <span className="grow" />
        {tab === "runs" ? null : (
          <Segmented
            label="Which cloud"
            value={kind}
            options={[
              { value: "real", label: "Real" },
              { value: "rehearsal", label: "Rehearsal" },
            ]}
            onChange={(value) => set({ kind: value })}
          />
        )}
      </div>
      <div id="environment-panel" role="tabpanel" aria-labelledby={`environment-panel-${tab}`} className="col">
        {tab === "units" ? <EnvironmentUnits place={place} newest={newest} /> : null}
        {tab === "resources" ? <StateResources place={place} /> : null}
        {tab === "outputs" ? <Outputs place={place} /> : null}
        {tab === "runs" ? (
          runs.data && runs.data.items.length > 0 ? (
            <RunTable label="Runs" runs={runs.data.items} />
          ) : (
            <Empty title="No runs yet">Plan it first: you see every change before anything happens.</Empty>
          )
        ) : null}
      </div>
      {asked ? <StartRunDialog act={asked} deployment={id} environment={name} tenant={named} onClose={() => setAsked(null)} /> : null}
    </div>
  );
}

function Facts({ account, region, newest, runs, kind }: { account: string; region: string; newest: Run | undefined; runs: Run[]; kind: Kind }) {
  const outcomes = runs.slice(0, 14).reverse();
  return (
    <dl className="figures card pad facts">
      <div>
        <dt>Account</dt>
        <dd className="mono">{account || "–"}</dd>
      </div>
      <div>
        <dt>Region</dt>
        <dd className="mono">{region || "–"}</dd>
      </div>
      <div>
        <dt>Last {kind === "rehearsal" ? "rehearsal" : "real run"}</dt>
        <dd>
          {newest ? (
            <Link to={runAddress(newest)} className="link">
              {actionWord(newest.action)} {newest.number}
            </Link>
          ) : (
            "none"
          )}{" "}
          {newest ? (
            <small className="mute">
              <Time at={newest.ended_at ?? newest.began_at ?? newest.queued_at} />
            </small>
          ) : null}
        </dd>
      </div>
      <div>
        <dt>Last outcomes, newest right</dt>
        <dd className="outcomes">
          {outcomes.length === 0 ? "none" : null}
          {outcomes.map((run) => (
            <Link key={run.id} to={runAddress(run)} className="outcome" title={`${run.number} ${runLook(run).word}${run.rehearsal ? ", rehearsal" : ""}`}>
              <StatusShape shape={runLook(run).shape} label={`${run.number} ${runLook(run).word}`} />
            </Link>
          ))}
        </dd>
      </div>
    </dl>
  );
}

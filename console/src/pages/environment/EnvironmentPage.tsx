/** A deployment in one environment: how it stands, its units, what can be done, its runs. */
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { Lock } from "lucide-react";
import { useState } from "react";

import { environmentsQuery } from "../../api/queries/deployments";
import { runsQuery } from "../../api/queries/runs";
import type { StartAct } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { DataTable } from "../../components/DataTable";
import { Counts } from "../../components/Operations";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusPill, StatusShape } from "../../components/StatusShape";
import { duration } from "../../components/Time";
import { StartRunDialog } from "../../modules/deployments/StartRun";
import { runLook, unitLook } from "../../modules/runs/looks";
import { RunTable, runAddress } from "../../modules/runs/RunTable";
import { useRunStore, useUnits } from "../../modules/runs/useRun";
import { usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { isProduction, useActOff } from "../deployment/DeploymentPage";
import { NotFound } from "../SignedIn";

const ACTS: [StartAct, string][] = [
  ["deploy", "Deploy…"],
  ["preview", "Plan…"],
  ["rollback", "Roll back…"],
  ["destroy", "Destroy…"],
];

export function EnvironmentPage() {
  const params = useParams({ strict: false }) as { deployment?: string; environment?: string };
  const [id, name] = [params.deployment ?? "", params.environment ?? ""];
  const { named } = usePlace();
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
  const last = environment.last_run;
  const look = last ? runLook(last) : null;
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
      <section className="section" aria-label="Units">
        <h2>Units</h2>
        {last ? <Units run={last.id} address={runAddress(last)} /> : <p className="mute">Units appear with the first plan.</p>}
      </section>
      <section className="section" aria-label="Runs">
        <h2>Runs</h2>
        {runs.data && runs.data.items.length > 0 ? (
          <RunTable label="Runs" runs={runs.data.items} />
        ) : (
          <Empty title="No runs yet">Plan it first: you see every change before anything happens.</Empty>
        )}
      </section>
      {asked ? <StartRunDialog act={asked} deployment={id} environment={name} tenant={named} onClose={() => setAsked(null)} /> : null}
    </div>
  );
}

/** As of the newest run. */
function Units({ run, address }: { run: string; address: string }) {
  const { named } = usePlace();
  const store = useRunStore(run, named);
  const units = useUnits(store);
  if (units.length === 0) return <Skeleton rows={4} />;
  return (
    <DataTable
      label="Units"
      keyOf={(unit) => unit.name}
      rows={units}
      columns={[
        {
          key: "status",
          head: "Status",
          width: "140px",
          cell: (unit) => (
            <span className="row">
              <StatusShape shape={unitLook(unit).shape} />
              {unitLook(unit).word}
            </span>
          ),
        },
        {
          key: "name",
          head: "Unit",
          width: "minmax(160px, 1fr)",
          cell: (unit) => (
            <Link to={address} search={{ unit: unit.name } as never} className="link b">
              {unit.name}
            </Link>
          ),
        },
        { key: "needs", head: "Needs", width: "minmax(120px, 1fr)", cell: (unit) => <span className="mute">{unit.needs.join(", ") || "nothing"}</span> },
        { key: "changes", head: "Changes", width: "160px", right: true, cell: (unit) => <Counts counts={unit.changes ?? unit.resources.by_op} /> },
        { key: "took", head: "Took", width: "80px", right: true, cell: (unit) => <span className="num">{unit.seconds ? duration(unit.seconds) : "–"}</span> },
      ]}
    />
  );
}

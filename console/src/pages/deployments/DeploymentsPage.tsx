/** All deployments of the tenant, each with its environments as shapes. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Lock } from "lucide-react";
import { useMemo } from "react";

import { deploymentsQuery, environmentsQuery } from "../../api/queries/deployments";
import type { Deployment } from "../../api/queries/deployments";
import { runsQuery } from "../../api/queries/runs";
import type { Run } from "../../api/queries/runs";
import { Segmented } from "../../components/Choice";
import { DataTable } from "../../components/DataTable";
import type { Column } from "../../components/DataTable";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { actionWord, runLook } from "../../modules/runs/looks";
import { runAddress } from "../../modules/runs/RunTable";
import { SavedViews } from "../../modules/views/SavedViews";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { isProduction } from "../deployment/DeploymentPage";
import { NewDeployment } from "../home/HomePage";

interface Row {
  deployment: Deployment;
  /** The newest run of each environment. */
  environments: Run[];
  last: Run | undefined;
  /** There are runs that were not read: what is missing here may be among them. */
  older: boolean;
}

type View = "all" | "failed" | "running" | "archived";
interface Filter {
  view?: View;
  find?: string;
}

function rowsOf(deployments: Deployment[], runs: Run[], older: boolean): Row[] {
  const runsOf = new Map<string, Run[]>();
  for (const run of runs) {
    const known = runsOf.get(run.deployment);
    if (known) known.push(run);
    else runsOf.set(run.deployment, [run]);
  }
  return deployments.map((deployment) => {
    const own = runsOf.get(deployment.id) ?? [];
    const acts = own.filter((run) => run.action !== "preview");
    const newest = new Map<string, Run>();
    for (const run of acts) if (!newest.has(run.environment)) newest.set(run.environment, run);
    return { deployment, environments: [...newest.values()], last: own[0], older };
  });
}

function inView(row: Row, view: View): boolean {
  if (view === "running") return row.environments.some((run) => run.status !== "ended");
  if (view === "failed") {
    return row.environments.some((run) => ["failed", "needs_attention", "rolled_back"].includes(run.result ?? ""));
  }
  return true;
}

function EnvironmentShapes({ deployment, runs }: { deployment: string; runs: Run[] }) {
  if (runs.length === 0) return <span className="mute">not deployed</span>;
  return (
    <span className="outcomes">
      {runs.map((run) => (
        <Link key={run.environment} to={`/deployments/${deployment}/${run.environment}`} className={run.rehearsal ? "envtag practice" : "envtag"} title={`${run.environment}: ${runLook(run).word}${run.rehearsal ? ", rehearsal" : ""}`}>
          <StatusShape shape={runLook(run).shape} label={runLook(run).word} />
          {isProduction(run.environment) ? <Lock className="s lock" aria-label="production" /> : null}
          {run.environment}
        </Link>
      ))}
    </span>
  );
}

/** For deployments whose last run is older than those of the list: asked for when the row is on screen. */
function OlderEnvironments({ deployment }: { deployment: string }) {
  const { named } = usePlace();
  const found = useQuery({ ...environmentsQuery(named, deployment), refetchInterval: false });
  if (!found.data) return <span className="mute">…</span>;
  return <EnvironmentShapes deployment={deployment} runs={found.data.flatMap((one) => (one.last_run ? [one.last_run] : []))} />;
}

const COLUMNS: Column<Row>[] = [
  {
    key: "id",
    head: "Deployment",
    width: "minmax(120px, 150px)",
    cell: ({ deployment }) => (
      <Link to={`/deployments/${deployment.id}`} className="link mono b">
        {deployment.id}
      </Link>
    ),
  },
  {
    key: "project",
    head: "Project",
    width: "minmax(160px, 1fr)",
    cell: ({ deployment }) => (
      <>
        <span className="b">{deployment.project}</span> <span className="mute">{deployment.organization}</span>
      </>
    ),
  },
  { key: "template", head: "Template", width: "minmax(100px, 160px)", cell: ({ deployment }) => deployment.template },
  {
    key: "environments",
    head: "Environments",
    width: "minmax(160px, 240px)",
    cell: ({ deployment, environments, older }) =>
      environments.length === 0 && older ? <OlderEnvironments deployment={deployment.id} /> : <EnvironmentShapes deployment={deployment.id} runs={environments} />,
  },
  {
    key: "last",
    head: "Last run",
    width: "minmax(130px, 170px)",
    cell: ({ last }) =>
      last ? (
        <Link to={runAddress(last)} className="link">
          {actionWord(last.action)} {last.number}
        </Link>
      ) : (
        <span className="mute">none</span>
      ),
  },
  { key: "updated", head: "Changed", width: "100px", right: true, cell: ({ deployment }) => <Time at={deployment.updated_at} /> },
];

export function DeploymentsPage() {
  const { named } = usePlace();
  const may = useMay();
  useCrumbs([{ label: "Deployments" }]);
  const search = useSearch({ strict: false }) as Filter;
  const navigate = useNavigate();
  const set = (change: Filter) =>
    void navigate({ to: "/deployments", search: ((before: Filter) => ({ ...before, ...change })) as never, replace: true });
  const view = search.view ?? "all";
  const deployments = useQuery(deploymentsQuery(named, view === "archived"));
  const runs = useQuery(runsQuery(named)).data;
  const rows = useMemo(() => rowsOf(deployments.data ?? [], runs?.items ?? [], runs?.more ?? false), [deployments.data, runs]);
  const wanted = (search.find ?? "").toLowerCase();
  const shown = useMemo(
    () =>
      rows.filter(
        (row) =>
          inView(row, view) &&
          (view === "archived") === Boolean(row.deployment.archived_at) &&
          `${row.deployment.id} ${row.deployment.project} ${row.deployment.organization} ${row.deployment.template}`.toLowerCase().includes(wanted),
      ),
    [rows, view, wanted],
  );
  const narrowed = wanted !== "" || view === "failed" || view === "running";
  return (
    <div className="page">
      <div className="page-head">
        <h1>Deployments</h1>
        <span className="lead num">{deployments.data ? rows.length.toLocaleString("en") : ""}</span>
        <span className="grow" />
        <NewDeployment off={may("deployment:definition:create")} />
      </div>
      <div className="filters">
        <input
          className="input sm"
          type="search"
          placeholder="Filter by id, project, template"
          aria-label="Filter deployments"
          value={search.find ?? ""}
          onChange={(event) => set({ find: event.target.value || undefined } as Filter)}
        />
        <Segmented
          label="View"
          value={view}
          options={[
            { value: "all", label: "All", count: view === "archived" ? undefined : rows.length },
            { value: "running", label: "Running" },
            { value: "failed", label: "Failed" },
            { value: "archived", label: "Archived" },
          ]}
          onChange={(value) => set({ view: value === "all" ? undefined : value } as Filter)}
        />
        <SavedViews page="deployments" />
        {narrowed ? (
          <span className="mute num">
            {shown.length.toLocaleString("en")} of {rows.length.toLocaleString("en")}
          </span>
        ) : null}
      </div>
      {deployments.isPending ? <Skeleton /> : null}
      {deployments.isError ? (
        <Failed what="Deployments were not read" error={deployments.error} onRetry={() => void deployments.refetch()} />
      ) : null}
      {deployments.data && shown.length === 0 ? (
        rows.length === 0 && view === "all" ? (
          <Empty title="Nothing is deployed yet" action={<NewDeployment off={may("deployment:definition:create")} />}>
            A deployment is one template for one project, over its environments. Begin with a rehearsal.
          </Empty>
        ) : (
          <Empty
            title="No deployment is like that"
            action={
              <button type="button" className="btn sm" onClick={() => set({ view: undefined, find: undefined } as Filter)}>
                Clear the filter
              </button>
            }
          />
        )
      ) : null}
      {shown.length > 0 ? (
        <DataTable
          label="Deployments"
          columns={COLUMNS}
          rows={shown}
          keyOf={(row) => row.deployment.id}
          onOpen={(row) => void navigate({ to: `/deployments/${row.deployment.id}` })}
        />
      ) : null}
    </div>
  );
}

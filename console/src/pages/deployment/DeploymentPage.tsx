/** One deployment: its environments, its runs, its manifest. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Lock } from "lucide-react";
import { useState } from "react";

import type { Operation } from "../../api/client";
import { NEEDS } from "../../api/generated/openapi";
import { deploymentQuery, environmentsQuery, useSwitchEnvironment } from "../../api/queries/deployments";
import type { Environment } from "../../api/queries/deployments";
import { runsQuery } from "../../api/queries/runs";
import type { StartAct } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { Tabs } from "../../components/Choice";
import { CopyId } from "../../components/Copy";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusPill } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { PromoteDialog } from "../../modules/deployments/PromoteDialog";
import { StartRunDialog } from "../../modules/deployments/StartRun";
import { actionWord, runLook } from "../../modules/runs/looks";
import { Rehearsal, RunTable, runAddress } from "../../modules/runs/RunTable";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { NotFound } from "../SignedIn";
import { ManifestTab } from "./ManifestTab";

type Tab = "environments" | "runs" | "manifest";

export function DeploymentPage() {
  const { deployment: id = "" } = useParams({ strict: false }) as { deployment?: string };
  const { named } = usePlace();
  const search = useSearch({ strict: false }) as { tab?: Tab; start?: StartAct };
  const navigate = useNavigate();
  const tab = search.tab ?? "environments";
  const deployment = useQuery(deploymentQuery(named, id));
  const environments = useQuery(environmentsQuery(named, id));
  const runs = useQuery(runsQuery(named, { deployment: id }));
  useCrumbs([{ label: "Deployments", to: "/deployments" }, { label: deployment.data?.project ?? id }]);
  if (deployment.isPending) return <div className="page"><Skeleton /></div>;
  if (deployment.isError) {
    if ((deployment.error as { status?: number }).status === 404) return <NotFound />;
    return <div className="page"><Failed what="The deployment was not read" error={deployment.error} onRetry={() => void deployment.refetch()} /></div>;
  }
  const data = deployment.data;
  return (
    <div className="page">
      <div className="page-head">
        <h1>{data.project}</h1>
        <CopyId text={data.id} label={data.id} />
        <span className="lead">
          {data.organization}, template {data.template}, revision {data.revision}
        </span>
        {data.archived_at ? <span className="tag warn">archived</span> : null}
      </div>
      <Tabs
        label="Deployment"
        panel="deployment-panel"
        value={tab}
        options={[
          { value: "environments", label: "Environments", count: environments.data?.length },
          { value: "runs", label: "Runs", count: runs.data?.items.length },
          { value: "manifest", label: "Manifest" },
        ]}
        onChange={(value) =>
          void navigate({ to: `/deployments/${id}`, search: { tab: value === "environments" ? undefined : value } as never, replace: true })
        }
      />
      <div id="deployment-panel" role="tabpanel" aria-labelledby={`deployment-panel-${tab}`} className="col">
        {tab === "environments" ? (
          environments.data ? (
            <Environments
              deployment={id}
              environments={environments.data}
              // Who comes with a command is asked at once, about the first environment that can be deployed to.
              start={search.start}
              onStarted={() => void navigate({ to: `/deployments/${id}`, search: ((before: object) => ({ ...before, start: undefined })) as never, replace: true })}
            />
          ) : (
            <Skeleton rows={3} />
          )
        ) : null}
        {tab === "runs" ? (
          runs.data && runs.data.items.length > 0 ? (
            <RunTable label="Runs" runs={runs.data.items} />
          ) : (
            <Empty title="No runs yet">Plan or deploy an environment.</Empty>
          )
        ) : null}
        {tab === "manifest" ? <ManifestTab deployment={data} /> : null}
      </div>
    </div>
  );
}

const OPERATIONS = {
  preview: "POST /api/v1/deployments/{deployment}/preview",
  deploy: "POST /api/v1/deployments/{deployment}/deploy",
  refresh: "POST /api/v1/deployments/{deployment}/refresh",
  rollback: "POST /api/v1/deployments/{deployment}/rollback",
  destroy: "POST /api/v1/deployments/{deployment}/destroy",
} as const satisfies Record<StartAct, Operation>;

export function isProduction(environment: string): boolean {
  return /^prod/i.test(environment);
}

/** Why an act is off in this environment. */
export function useActOff(environment: Environment | undefined): (act: StartAct) => string | null {
  const may = useMay();
  return (act) => {
    const needed = NEEDS[OPERATIONS[act]];
    const refused = needed ? may(needed) : null;
    if (refused) return refused;
    if (!environment?.enabled) return "This environment is not enabled.";
    const last = environment.last_run;
    if ((act === "rollback" || act === "destroy" || act === "refresh") && !last) return "Nothing was deployed here yet.";
    return null;
  };
}

interface EnvironmentsProps {
  deployment: string;
  environments: Environment[];
  start: StartAct | undefined;
  onStarted: () => void;
}

function Environments({ deployment, environments, start, onStarted }: EnvironmentsProps) {
  const first = environments.find((one) => one.enabled)?.name;
  const [chosen, setAsked] = useState<{ act: StartAct; environment: string } | null>(null);
  const asked = chosen ?? (start && first ? { act: start, environment: first } : null);
  const [promoting, setPromoting] = useState<{ from: Environment; to: Environment } | null>(null);
  const { named } = usePlace();
  return (
    <>
      <div className="cards">
        {environments.map((environment, index) => (
          <EnvironmentCard
            key={environment.name}
            deployment={deployment}
            environment={environment}
            next={environments[index + 1]}
            onPromote={(to) => setPromoting({ from: environment, to })}
            onAsk={(act) => setAsked({ act, environment: environment.name })}
          />
        ))}
      </div>
      {asked ? <StartRunDialog {...asked} deployment={deployment} tenant={named} onClose={() => {
        setAsked(null);
        if (start) onStarted();
      }} /> : null}
      {promoting ? (
        <PromoteDialog
          deployment={deployment}
          from={promoting.from.name}
          to={promoting.to.name}
          rehearsal={promoting.from.last_run?.rehearsal ?? false}
          tenant={named}
          onClose={() => setPromoting(null)}
          onPlan={() => {
            setAsked({ act: "preview", environment: promoting.to.name });
            setPromoting(null);
          }}
        />
      ) : null}
    </>
  );
}

interface CardProps {
  deployment: string;
  environment: Environment;
  /** The one that follows it. */
  next: Environment | undefined;
  onAsk: (act: StartAct) => void;
  onPromote: (to: Environment) => void;
}

/** Why what is in an environment cannot go on to the next one. */
export function promoteOff(environment: Environment, next: Environment): string | null {
  if (!environment.last_run || environment.last_run.result !== "succeeded") return `${environment.name} has no run that succeeded last.`;
  return next.enabled ? null : `Enable ${next.name} first.`;
}

function EnvironmentCard({ deployment, environment, next, onAsk, onPromote }: CardProps) {
  const off = useActOff(environment);
  const may = useMay();
  const say = useSay();
  const { named } = usePlace();
  const turn = useSwitchEnvironment(named, deployment);
  const run = environment.last_run;
  const look = run ? runLook(run) : null;
  return (
    <section className="card pad" aria-label={environment.name}>
      <div className="row">
        <h2 className="h2 row">
          {isProduction(environment.name) ? <Lock className="s lock" aria-label="production" /> : null}
          <Link to={`/deployments/${deployment}/${environment.name}`} className="link">
            {environment.name}
          </Link>
        </h2>
        <span className="grow" />
        {look ? <StatusPill shape={look.shape}>{look.word}</StatusPill> : <span className="mute small">not deployed</span>}
      </div>
      <dl className="pairs small">
        <dt>Account</dt>
        <dd className="mono trunc">{environment.account || "–"}</dd>
        <dt>Region</dt>
        <dd className="mono">{environment.region || "–"}</dd>
        <dt>Last run</dt>
        <dd className="row wrap">
          {run ? (
            <>
              <Link to={runAddress(run)} className="link">
                {actionWord(run.action)} {run.number}
              </Link>
              <Time at={run.ended_at ?? run.began_at ?? run.queued_at} />
              {run.rehearsal ? <Rehearsal /> : null}
            </>
          ) : (
            "none"
          )}
        </dd>
      </dl>
      <div className="row wrap">
        {environment.enabled ? (
          <>
            <Button size="sm" kind="pri" off={off("deploy")} onClick={() => onAsk("deploy")}>
              Deploy…
            </Button>
            <Button size="sm" off={off("preview")} onClick={() => onAsk("preview")}>
              Plan…
            </Button>
            {next ? (
              <Button size="sm" off={promoteOff(environment, next)} onClick={() => onPromote(next)}>
                Promote to {next.name}…
              </Button>
            ) : null}
          </>
        ) : (
          <Button
            size="sm"
            off={may("deployment:environment:manage")}
            busy={turn.isPending}
            onClick={() =>
              turn.mutate(
                { environment: environment.name, on: true },
                { onSuccess: () => say(`${environment.name} is enabled.`), onError: (error) => say(error.message, true) },
              )
            }
          >
            Enable
          </Button>
        )}
        <Link to={`/deployments/${deployment}/${environment.name}`} className="btn sm ghost">
          Open
        </Link>
      </div>
    </section>
  );
}

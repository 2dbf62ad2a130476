/** What needs somebody, what runs, what was last. */
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";

import type { PermissionKey } from "../../api/generated/openapi";
import { deploymentsQuery } from "../../api/queries/deployments";
import { runsQuery } from "../../api/queries/runs";
import type { Run } from "../../api/queries/runs";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { RunTable } from "../../modules/runs/RunTable";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";

function needsSomebody(runs: Run[]): Run[] {
  // The newest run of an environment speaks for it.
  const seen = new Set<string>();
  return runs.filter((run) => {
    const place = `${run.deployment}/${run.environment}`;
    if (run.action === "preview" || seen.has(place)) return false;
    seen.add(place);
    return run.status === "paused" || ["failed", "needs_attention", "interrupted"].includes(run.result ?? "");
  });
}

export function HomePage() {
  const { me, named } = usePlace();
  const may = useMay();
  const search = useSearch({ strict: false }) as { next?: string };
  useCrumbs([{ label: "Home" }]);
  const runs = useQuery(runsQuery(named));
  const deployments = useQuery(deploymentsQuery(named));
  if (runs.isPending) return <div className="page"><Skeleton /></div>;
  if (runs.isError) return <div className="page"><Failed what="Runs were not read" error={runs.error} onRetry={() => void runs.refetch()} /></div>;
  const all = runs.data.items;
  const needs = needsSomebody(all);
  const running = all.filter((run) => run.status === "running" || run.status === "queued");
  const first = me.user.display_name.split(" ")[0] || me.user.email;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Hello, {first}</h1>
        <span className="grow" />
        <NewDeployment off={may("deployment:definition:create")} />
      </div>
      {search.next ? <NextSteps /> : null}
      {deployments.data?.length === 0 ? (
        <FirstSteps off={may("deployment:definition:create")} />
      ) : (
        <>
          <Section title="Needs you" runs={needs} empty="Nothing waits for you." />
          <Section title="Running now" runs={running} empty="Nothing runs." />
          <Section title="Last runs" runs={all.filter((run) => run.status === "ended").slice(0, 8)} empty="No run has ended yet." />
        </>
      )}
    </div>
  );
}

function Section({ title, runs, empty }: { title: string; runs: Run[]; empty: string }) {
  return (
    <section className="section" aria-label={title}>
      <h2>{title}</h2>
      {runs.length === 0 ? <p className="mute">{empty}</p> : <RunTable label={title} runs={runs} />}
    </section>
  );
}

export function NewDeployment({ off }: { off: string | null }) {
  if (off) {
    return (
      <button type="button" className="btn" aria-disabled title={off}>
        New deployment
        <span className="hidden-text">{off}</span>
      </button>
    );
  }
  return (
    <Link to="/deployments/new" className="btn pri">
      New deployment
    </Link>
  );
}

function FirstSteps({ off }: { off: string | null }) {
  return (
    <>
      <Empty title="Nothing is deployed yet" action={<NewDeployment off={off} />}>
        Begin with a rehearsal: the real programs run against a simulated cloud. Nothing is created, nothing is paid, and you see
        the same screens as later.
      </Empty>
      <NextSteps />
    </>
  );
}

/** Three ways to go on, of those that one may go. */
function NextSteps() {
  const may = useMay();
  const steps: [PermissionKey, string, string, string][] = [
    ["deployment:definition:create", "/deployments/new", "Rehearse a deployment of your own", "Choose a template, see the plan, and carry it out on a simulated cloud."],
    ["cloud:account:manage", "/cloud-accounts", "Connect a cloud", "Credentials are sealed, and only providers of your own runs get them."],
    ["users:account:create", "/users", "Let others in", "Make users, give them roles, and ask why somebody may."],
    ["template:definition:read", "/templates", "See what is in the library", "Templates put shipped programs together: networks, databases, clusters."],
  ];
  const open = steps.filter(([needed]) => may(needed) === null).slice(0, 3);
  return (
    <nav className="cards" aria-label="Next steps">
      {open.map(([, to, title, about]) => (
        <Link key={to} to={to} className="card pad pick">
          <span className="h2">{title}</span>
          <span className="sec">{about}</span>
        </Link>
      ))}
    </nav>
  );
}

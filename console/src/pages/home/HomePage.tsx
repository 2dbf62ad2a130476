/** What needs somebody, what runs, what was last. */
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";

import type { PermissionKey } from "../../api/generated/openapi";
import type { Approval } from "../../api/queries/approvals";
import { anyDeploymentQuery } from "../../api/queries/deployments";
import { runsQuery } from "../../api/queries/runs";
import type { Run } from "../../api/queries/runs";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { useMyApprovals } from "../../modules/approvals/ApprovalsBadge";
import { WaitingLine } from "../../modules/approvals/WaitsForApproval";
import { actionWord } from "../../modules/runs/looks";
import { RunTable } from "../../modules/runs/RunTable";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";

/** Runs that stopped and wait for a person; the newest run of an environment speaks for it. */
export function needsSomebody(runs: Run[]): Run[] {
  const seen = new Set<string>();
  return runs.filter((run) => {
    const place = `${run.deployment}/${run.environment}`;
    if (run.action === "preview" || seen.has(place)) return false;
    seen.add(place);
    return run.status === "paused" || ["failed", "needs_attention", "interrupted"].includes(run.result ?? "");
  });
}

/** Whether somebody has to agree before it begins. */
function waits(run: Run): boolean {
  return run.status === "queued" && Boolean(run.approval);
}

export function HomePage() {
  const { me, named } = usePlace();
  const may = useMay();
  const search = useSearch({ strict: false }) as { next?: string };
  useCrumbs([{ label: "Home" }]);
  const runs = useQuery(runsQuery(named));
  const deployed = useQuery(anyDeploymentQuery(named)).data;
  const approvals = useMyApprovals();
  if (runs.isPending) return <div className="page"><Skeleton /></div>;
  if (runs.isError) return <div className="page"><Failed what="Runs were not read" error={runs.error} onRetry={() => void runs.refetch()} /></div>;
  const all = runs.data.items;
  const needs = needsSomebody(all);
  const decided = new Set(approvals.items.map((approval) => approval.run));
  const waiting = all.filter((run) => waits(run) && !decided.has(run.id));
  const running = all.filter((run) => run.status === "running" || (run.status === "queued" && !waits(run)));
  const first = me.user.display_name.split(" ")[0] || me.user.email;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Hello, {first}</h1>
        <span className="grow" />
        <NewDeployment off={may("deployment:definition:create")} />
      </div>
      {search.next ? <NextSteps /> : null}
      {deployed === false ? (
        <FirstSteps off={may("deployment:definition:create")} />
      ) : (
        <>
          <NeedsYou runs={needs} approvals={approvals.items} />
          {waiting.length > 0 ? <Section title="Waits for others" runs={waiting} empty="" /> : null}
          <Section title="Running now" runs={running} empty="Nothing runs." />
          <Section title="Last runs" runs={all.filter((run) => run.status === "ended").slice(0, 8)} empty="No run has ended yet." />
        </>
      )}
    </div>
  );
}

/** Decisions first: others wait for them. */
function NeedsYou({ runs, approvals }: { runs: Run[]; approvals: Approval[] }) {
  const nothing = runs.length === 0 && approvals.length === 0;
  return (
    <section className="section" aria-label="Needs you">
      <h2>Needs you</h2>
      {nothing ? <p className="mute">Nothing waits for you.</p> : null}
      {approvals.map((approval) => (
        <WaitingLine
          key={approval.id}
          approval={approval}
          what={`${actionWord(approval.action)} ${approval.deployment} in ${approval.environment} (${approval.run_number})`}
          action={
            <Link to={`/approvals/${approval.id}`} className="btn sm pri">
              Open<span className="hidden-text"> the approval of {approval.run_number}</span>
            </Link>
          }
        />
      ))}
      {runs.length > 0 ? <RunTable label="Needs you" runs={runs} /> : null}
    </section>
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

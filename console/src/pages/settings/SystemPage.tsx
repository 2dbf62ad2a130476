/** How the installation is: server, database, what runs. */
import { useQuery } from "@tanstack/react-query";

import { healthQuery } from "../../api/queries/access";
import { runsQuery } from "../../api/queries/runs";
import { CommandLine } from "../../components/Copy";
import { Failed, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import type { Shape } from "../../components/StatusShape";
import { usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";

export function SystemPage() {
  const { named } = usePlace();
  useCrumbs([{ label: "System" }]);
  const health = useQuery(healthQuery);
  const runs = useQuery(runsQuery(named)).data?.items ?? [];
  if (health.isPending) return <div className="page"><Skeleton rows={4} /></div>;
  if (health.isError) return <div className="page"><Failed what="The server does not answer" error={health.error} onRetry={() => void health.refetch()} /></div>;
  const { status, version, checks } = health.data;
  const running = runs.filter((run) => run.status === "running").length;
  const queued = runs.filter((run) => run.status === "queued").length;
  const rows: [Shape, string, string][] = [
    [status === "healthy" ? "ok" : "failed", "Server", `${status}, version ${version}`],
    ...Object.entries(checks).map<[Shape, string, string]>(([name, word]) => [word === "up" ? "ok" : "failed", name, word]),
    ["same", "Runs of this tenant", `${running} running, ${queued} queued`],
  ];
  return (
    <div className="page">
      <div className="page-head">
        <h1>System</h1>
      </div>
      <ul className="card">
        {rows.map(([shape, name, text]) => (
          <li key={name} className="risk">
            <StatusShape shape={shape} />
            <span className="b" style={{ width: 180 }}>
              {name[0]?.toUpperCase() + name.slice(1)}
            </span>
            <span className="sec">{text}</span>
          </li>
        ))}
      </ul>
      <section className="section" aria-label="Keep it safe">
        <h2>Keep it safe</h2>
        <p className="sec">A backup can be made while the server runs. The keys are not in it: keep a copy of them apart.</p>
        <CommandLine command="nimbus backup --output nimbus.tar.zst" />
      </section>
    </div>
  );
}

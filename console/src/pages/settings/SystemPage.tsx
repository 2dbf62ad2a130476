/** How the installation is: its checks, who carries runs out, the database. For whoever runs it. */
import { useQuery } from "@tanstack/react-query";

import { healthQuery } from "../../api/queries/access";
import { systemQuery } from "../../api/queries/reviews";
import type { SystemView } from "../../api/queries/reviews";
import { CommandLine } from "../../components/Copy";
import { Failed, Skeleton } from "../../components/PageState";
import { StatusPill } from "../../components/StatusShape";
import { duration, timeOfDay } from "../../components/Time";
import { useCrumbs } from "../../modules/shell/frame";
import { SystemChecks } from "../../modules/system/SystemChecks";

export function SystemPage() {
  useCrumbs([{ label: "System" }]);
  const system = useQuery(systemQuery);
  const health = useQuery(healthQuery);
  if (system.isPending) return <div className="page"><Skeleton rows={6} /></div>;
  if (system.isError) return <div className="page"><Failed what="The system was not looked at" error={system.error} onRetry={() => void system.refetch()} /></div>;
  const { checks, version, server_time, runners, database } = system.data;
  const worst = checks.some((check) => check.status === "failed") ? "failed" : checks.some((check) => check.status === "warning") ? "warning" : "ok";
  const words = { failed: "Something has to be mended", warning: "Works, with things to know", ok: "In order" };
  return (
    <div className="page">
      <div className="page-head">
        <h1>System</h1>
        <StatusPill shape={health.isError ? "failed" : worst}>{health.isError ? "The server does not answer" : words[worst]}</StatusPill>
        <span className="lead">
          version {version}, looked at {timeOfDay(server_time)}
        </span>
      </div>
      <SystemChecks checks={checks} />
      <Runners runners={runners} />
      <Database database={database} />
      <section className="section" aria-label="Keep it safe">
        <h2>Keep it safe</h2>
        <p className="sec">A backup can be made while the server runs. The keys are not in it: keep a copy of them apart.</p>
        <CommandLine command="nimbus backup --output nimbus.tar.gz" />
      </section>
    </div>
  );
}

function Figures({ label, rows }: { label: string; rows: [string, string][] }) {
  return (
    <section className="section" aria-label={label}>
      <h2>{label}</h2>
      <dl className="figures card pad facts">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="num">{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Runners({ runners }: { runners: SystemView["runners"] }) {
  return (
    <Figures
      label="Runners"
      rows={[
        ["Running now", `${runners.running} on ${runners.servers} ${runners.servers === 1 ? "server" : "servers"}`],
        ["Queued", String(runners.queued)],
        ["Places on this server", String(runners.places)],
        ["Of one customer", String(runners.per_customer)],
        ["A run may take", duration(runners.most_seconds)],
      ]}
    />
  );
}

function Database({ database }: { database: SystemView["database"] }) {
  return (
    <Figures
      label="Database"
      rows={[
        ["PostgreSQL", database.version],
        ["Size", `${(database.bytes / 1024 / 1024).toFixed(1)} MB`],
        ["Tenants", `${database.tenants}, ${database.isolation === "shared" ? "in one schema" : "a schema each"}`],
        ["Schema", database.schema],
        ["Connections", `${database.connections} of ${database.most_connections}`],
        ["Answers in", `${database.milliseconds.toFixed(1)} ms`],
      ]}
    />
  );
}

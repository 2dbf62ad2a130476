/** Runs as a list: how it stands, what, where, how long. */
import { Link, useNavigate } from "@tanstack/react-router";

import type { Run } from "../../api/queries/runs";
import { DataTable } from "../../components/DataTable";
import type { Column } from "../../components/DataTable";
import { StatusPill } from "../../components/StatusShape";
import { Time, duration, useNow } from "../../components/Time";
import { actionWord, runLook } from "./looks";

/** A plan has a page of its own. */
export function runAddress(run: Pick<Run, "id" | "action">): string {
  return run.action === "preview" ? `/plans/${run.id}` : `/runs/${run.id}`;
}

export function Took({ run }: { run: Run }) {
  const now = useNow();
  if (!run.began_at) return <span className="mute">–</span>;
  const end = run.ended_at ? Date.parse(run.ended_at) : now;
  return <span className="num">{duration(Math.max(0, Math.round((end - Date.parse(run.began_at)) / 1000)))}</span>;
}

export function Rehearsal() {
  return (
    <span className="rehearsal" title="On a simulated cloud: nothing real is touched">
      REHEARSAL
    </span>
  );
}

const COLUMNS: Column<Run>[] = [
  {
    key: "status",
    head: "Status",
    width: "minmax(150px, 190px)",
    cell: (run) => {
      const look = runLook(run);
      return <StatusPill shape={look.shape}>{look.word}</StatusPill>;
    },
  },
  {
    key: "run",
    head: "Run",
    width: "minmax(150px, 1fr)",
    cell: (run) => (
      <span className="row">
        <Link to={runAddress(run)} className="link b">
          {actionWord(run.action)} {run.deployment}
        </Link>
        {run.rehearsal ? <Rehearsal /> : null}
      </span>
    ),
  },
  { key: "number", head: "Number", width: "80px", cell: (run) => <span className="mono sec">{run.number}</span> },
  { key: "environment", head: "Environment", width: "110px", cell: (run) => run.environment },
  { key: "took", head: "Took", width: "80px", right: true, cell: (run) => <Took run={run} /> },
  { key: "queued", head: "Asked for", width: "110px", right: true, cell: (run) => <Time at={run.queued_at} /> },
];

export function RunTable({ label, runs }: { label: string; runs: Run[] }) {
  const navigate = useNavigate();
  return (
    <DataTable
      label={label}
      columns={COLUMNS}
      rows={runs}
      keyOf={(run) => run.id}
      onOpen={(run) => void navigate({ to: runAddress(run) })}
    />
  );
}

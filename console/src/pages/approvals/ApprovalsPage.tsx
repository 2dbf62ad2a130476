/** Runs that wait for people: those that wait for whoever looks come first. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { approvalsQuery } from "../../api/queries/approvals";
import type { Approval } from "../../api/queries/approvals";
import { Button } from "../../components/Button";
import { Segmented } from "../../components/Choice";
import { DataTable } from "../../components/DataTable";
import type { Column } from "../../components/DataTable";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusPill } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { approvalLook, yoursFirst } from "../../modules/approvals/chain";
import type { Names } from "../../modules/approvals/chain";
import { useNames } from "../../modules/approvals/useApprovals";
import { actionWord } from "../../modules/runs/looks";
import { Rehearsal } from "../../modules/runs/RunTable";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";

interface Filter {
  status?: string;
}

const FIRST = 200;
const STATUSES = ["pending", "approved", "rejected", "expired", "withdrawn", "all"] as const;
const WORDS: Record<(typeof STATUSES)[number], string> = {
  pending: "Pending",
  approved: "Approved",
  rejected: "Denied",
  expired: "Expired",
  withdrawn: "Withdrawn",
  all: "All",
};

function columnsOf(names: Names): Column<Approval>[] {
  return [
    {
      key: "status",
      head: "Status",
      width: "minmax(150px, 190px)",
      cell: (one) => {
        const look = approvalLook(one);
        return <StatusPill shape={look.shape}>{look.word}</StatusPill>;
      },
    },
    {
      key: "run",
      head: "Run",
      width: "minmax(170px, 1fr)",
      cell: (one) => (
        <span className="row">
          <Link to={`/approvals/${one.id}`} className="link b">
            {actionWord(one.action)} {one.deployment}
          </Link>
          {one.rehearsal ? <Rehearsal /> : null}
        </span>
      ),
    },
    { key: "number", head: "Number", width: "80px", cell: (one) => <span className="mono sec">{one.run_number}</span> },
    { key: "environment", head: "Environment", width: "110px", cell: (one) => one.environment },
    { key: "step", head: "Step", width: "minmax(90px, 140px)", cell: (one) => one.step ?? <span className="mute">–</span> },
    { key: "by", head: "Asked by", width: "minmax(110px, 160px)", cell: (one) => <span className="trunc">{names.user(one.requested_by)}</span> },
    { key: "deadline", head: "Time ends", width: "110px", right: true, cell: (one) => (one.deadline && one.status === "pending" ? <Time at={one.deadline} /> : <span className="mute">–</span>) },
  ];
}

export function ApprovalsPage() {
  const { named } = usePlace();
  const may = useMay();
  const names = useNames();
  useCrumbs([{ label: "Approvals" }]);
  const search = useSearch({ strict: false }) as Filter;
  const navigate = useNavigate();
  const [count, setCount] = useState(FIRST);
  const status = STATUSES.find((one) => one === search.status) ?? "pending";
  const refused = may("approval:request:read");
  const filter = status === "all" ? {} : { status };
  const found = useQuery({ ...approvalsQuery(named, filter, count), enabled: !refused, placeholderData: keepPreviousData });
  const columns = useMemo(() => columnsOf(names), [names]);
  const shown = yoursFirst(found.data?.items ?? []);
  const set = (value: string) =>
    void navigate({ to: "/approvals", search: ((before: Filter) => ({ ...before, status: value === "pending" ? undefined : value })) as never, replace: true });
  if (refused) return <div className="page"><Empty title="Approvals are not yours to see">{refused}</Empty></div>;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Approvals</h1>
      </div>
      <div className="filters">
        <Segmented label="Status" value={status} options={STATUSES.map((value) => ({ value, label: WORDS[value] }))} onChange={set} />
      </div>
      {found.isPending ? <Skeleton /> : null}
      {found.isError ? <Failed what="Approvals were not read" error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.data && shown.length === 0 ? (
        <Empty title={status === "pending" ? "Nothing waits for approval" : "No approval is like that"}>
          Runs wait here where an environment has a policy that says who has to agree.
        </Empty>
      ) : null}
      {shown.length > 0 ? (
        <DataTable label="Approvals" columns={columns} rows={shown} keyOf={(one) => one.id} onOpen={(one) => void navigate({ to: `/approvals/${one.id}` })} />
      ) : null}
      {found.data?.more ? (
        <p className="row mute">
          The newest {found.data.items.length.toLocaleString("en")} are looked at.
          <Button size="sm" busy={found.isFetching} onClick={() => setCount(count + FIRST)}>
            Show older ones
          </Button>
        </p>
      ) : null}
    </div>
  );
}

/** All runs of the tenant, newest first, with filters in the address. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import { runsQuery } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { Segmented } from "../../components/Choice";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { RunTable } from "../../modules/runs/RunTable";
import { usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { SavedViews } from "../../modules/views/SavedViews";

interface Filter {
  status?: string;
  action?: string;
  find?: string;
}

const FIRST = 200;
const STATUSES = ["all", "running", "queued", "paused", "ended"] as const;
const ACTIONS = ["all", "deploy", "preview", "refresh", "rollback", "destroy"] as const;

export function RunsPage() {
  const { named } = usePlace();
  useCrumbs([{ label: "Runs" }]);
  const search = useSearch({ strict: false }) as Filter;
  const navigate = useNavigate();
  const set = (change: Filter) =>
    void navigate({ to: "/runs", search: ((before: Filter) => ({ ...before, ...change })) as never, replace: true });
  const { status, action } = search;
  const [count, setCount] = useState(FIRST);
  const runs = useQuery({ ...runsQuery(named, { status, action }, count), placeholderData: keepPreviousData });
  const wanted = (search.find ?? "").toLowerCase();
  const shown = (runs.data?.items ?? []).filter((run) =>
    `${run.deployment} ${run.environment} ${run.number} ${run.result ?? ""}`.toLowerCase().includes(wanted),
  );
  const filtered = Boolean(status || action || wanted);
  const word = (text: string) => (text === "preview" ? "Plan" : text[0]?.toUpperCase() + text.slice(1));
  return (
    <div className="page">
      <div className="page-head">
        <h1>Runs</h1>
      </div>
      <div className="filters">
        <input
          className="input sm"
          type="search"
          placeholder="Filter by deployment, environment, number"
          aria-label="Filter runs"
          value={search.find ?? ""}
          onChange={(event) => set({ find: event.target.value || undefined } as Filter)}
        />
        <Segmented
          label="Status"
          value={(status ?? "all") as (typeof STATUSES)[number]}
          options={STATUSES.map((value) => ({ value, label: word(value) }))}
          onChange={(value) => set({ status: value === "all" ? undefined : value } as Filter)}
        />
        <Segmented
          label="Kind"
          value={(action ?? "all") as (typeof ACTIONS)[number]}
          options={ACTIONS.map((value) => ({ value, label: word(value) }))}
          onChange={(value) => set({ action: value === "all" ? undefined : value } as Filter)}
        />
        <SavedViews page="runs" />
      </div>
      {runs.isPending ? <Skeleton /> : null}
      {runs.isError ? <Failed what="Runs were not read" error={runs.error} onRetry={() => void runs.refetch()} /> : null}
      {runs.data && shown.length === 0 ? (
        filtered ? (
          <Empty
            title="No run is like that"
            action={
              <button type="button" className="btn sm" onClick={() => set({ status: undefined, action: undefined, find: undefined } as Filter)}>
                Clear the filter
              </button>
            }
          />
        ) : (
          <Empty title="No runs yet">A run is one plan, deploy, roll back or destroy of a deployment in one environment.</Empty>
        )
      ) : null}
      {shown.length > 0 ? <RunTable label="Runs" runs={shown} /> : null}
      {runs.data?.more ? (
        <p className="row mute">
          The newest {runs.data.items.length.toLocaleString("en")} are looked at.
          <Button size="sm" busy={runs.isFetching} onClick={() => setCount(count + FIRST)}>
            Show older ones
          </Button>
        </p>
      ) : null}
    </div>
  );
}

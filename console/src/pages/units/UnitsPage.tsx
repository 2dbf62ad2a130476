/** Every unit of the tenant, each with how it stands: the Pulumi stacks over all deployments and environments. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";

import { itemsQuery } from "../../api/queries/cmdb";
import type { Item } from "../../api/queries/cmdb";
import { standingQuery } from "../../api/queries/deployments";
import { Button } from "../../components/Button";
import { Segmented } from "../../components/Choice";
import { DataTable } from "../../components/DataTable";
import type { Column } from "../../components/DataTable";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useItemFeed } from "../../modules/cmdb/useItemFeed";
import { Rehearsal } from "../../modules/runs/RunTable";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { unitAddress } from "../../modules/states/StateTables";
import { standsAs } from "../environment/EnvironmentUnits";

interface Filter {
  find?: string | undefined;
  cloud?: string | undefined;
  environment?: string | undefined;
}

/** Of what items say, what is asked for again while rows are on screen. */
const AGAIN_MS = 15_000;

const place = (item: Item) => ({ deployment: item.deployment ?? "", environment: item.environment ?? "", rehearsal: item.rehearsal });

function Stands({ item }: { item: Item }) {
  const { named } = usePlace();
  const { deployment, environment, rehearsal } = place(item);
  const found = useQuery({ ...standingQuery(named, deployment, rehearsal), refetchInterval: AGAIN_MS });
  const standing = found.data?.find((one) => one.name === environment)?.stacks?.find((one) => one.name === item.unit);
  if (!standing) return <span className="mute">{found.isPending ? "…" : "not in the manifest"}</span>;
  const look = standsAs(standing, undefined);
  return (
    <span className="row">
      <StatusShape shape={look.shape} />
      {look.word}
    </span>
  );
}

const COLUMNS: Column<Item>[] = [
  { key: "status", head: "Status", width: "150px", cell: (item) => <Stands item={item} /> },
  {
    key: "unit",
    head: "Unit",
    width: "minmax(160px, 1fr)",
    cell: (item) => (
      <span className="row">
        <Link {...(unitAddress(place(item), item.unit ?? "") as { to: string })} className="link b trunc">
          {item.unit}
        </Link>
        {item.rehearsal ? <Rehearsal /> : null}
      </span>
    ),
  },
  {
    key: "deployment",
    head: "Deployment",
    width: "minmax(110px, 160px)",
    cell: (item) => (
      <Link to={`/deployments/${item.deployment ?? ""}`} className="link mono">
        {item.deployment}
      </Link>
    ),
  },
  { key: "environment", head: "Environment", width: "minmax(100px, 150px)", cell: (item) => item.environment },
  { key: "outputs", head: "Outputs", width: "90px", right: true, cell: (item) => <span className="num">{Object.keys(item.attributes).length}</span> },
  {
    key: "around",
    head: "",
    width: "120px",
    right: true,
    cell: (item) => (
      <Link to={`/cmdb/resources/${item.id}`} search={{ tab: "relationships" } as never} className="link">
        What it has<span className="hidden-text">: {item.name}</span>
      </Link>
    ),
  },
  { key: "changed", head: "Changed", width: "110px", right: true, cell: (item) => <Time at={item.updated_at} /> },
];

export function UnitsPage() {
  const { named } = usePlace();
  const may = useMay();
  useCrumbs([{ label: "Units" }]);
  useItemFeed();
  const search = useSearch({ strict: false }) as Filter;
  const navigate = useNavigate();
  const set = (change: Filter) => void navigate({ to: "/units", search: ((before: Filter) => ({ ...before, ...change })) as never, replace: true });
  const refused = may("cmdb:read");
  const pages = useInfiniteQuery({
    ...itemsQuery(named, { class: "nimbus:unit", text: search.find, environment: search.environment, ...(search.cloud ? { rehearsal: search.cloud === "rehearsal" } : {}) }),
    enabled: !refused,
  });
  if (refused) return <div className="page"><Empty title="Units are not yours to see">{refused}</Empty></div>;
  const items = pages.data?.pages.flatMap((page) => page.items);
  const narrowed = Boolean(search.find ?? search.cloud ?? search.environment);
  return (
    <div className="page">
      <div className="page-head">
        <h1>Units</h1>
        <span className="lead">every Pulumi stack, over all deployments and environments</span>
      </div>
      <div className="filters">
        <input className="input sm" type="search" aria-label="Filter units" placeholder="Words of unit, deployment, environment" value={search.find ?? ""} onChange={(event) => set({ find: event.target.value || undefined })} />
        <Segmented
          label="Cloud"
          value={search.cloud ?? "all"}
          options={[
            { value: "all", label: "All" },
            { value: "real", label: "Real" },
            { value: "rehearsal", label: "Rehearsal" },
          ]}
          onChange={(value) => set({ cloud: value === "all" ? undefined : value })}
        />
      </div>
      {pages.isPending ? <Skeleton /> : null}
      {pages.isError ? <Failed what="Units were not read" error={pages.error} onRetry={() => void pages.refetch()} /> : null}
      {items?.length === 0 ? (
        <Empty
          title={narrowed ? "No unit is like that" : "No unit was deployed yet"}
          action={narrowed ? <button type="button" className="btn sm" onClick={() => set({ find: undefined, cloud: undefined, environment: undefined })}>Clear the filter</button> : null}
        >
          {narrowed ? null : "A component in one environment of a deployment is a unit. Units appear when their first run ends."}
        </Empty>
      ) : null}
      {items && items.length > 0 ? (
        <DataTable label="Units" columns={COLUMNS} rows={items} keyOf={(item) => item.id} onOpen={(item) => void navigate(unitAddress(place(item), item.unit ?? "") as { to: string })} />
      ) : null}
      {pages.hasNextPage ? (
        <p>
          <Button size="sm" busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Show more
          </Button>
        </p>
      ) : null}
    </div>
  );
}

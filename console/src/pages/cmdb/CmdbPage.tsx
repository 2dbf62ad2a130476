/** What a tenant has: items of every run and import, the compartments that they are in, and the imports that were tried. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { classesQuery, compartmentsQuery, itemsQuery } from "../../api/queries/cmdb";
import type { Compartment, Item, ItemFilter } from "../../api/queries/cmdb";
import { Button } from "../../components/Button";
import { Segmented, Tabs } from "../../components/Choice";
import { CommandLine } from "../../components/Copy";
import { DataTable } from "../../components/DataTable";
import type { Column } from "../../components/DataTable";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useItemFeed } from "../../modules/cmdb/useItemFeed";
import { shortType } from "../../modules/runs/ResourceTree";
import { Rehearsal } from "../../modules/runs/RunTable";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { SavedViews } from "../../modules/views/SavedViews";
import { Compartments, pathOf } from "./Compartments";
import { ImportDialog, Imports } from "./Imports";

type Tab = "items" | "compartments" | "imports";
interface Filter {
  tab?: Tab | undefined;
  find?: string | undefined;
  class?: string | undefined;
  status?: string | undefined;
  cloud?: string | undefined;
  compartment?: string | undefined;
  deployment?: string | undefined;
  environment?: string | undefined;
  unit?: string | undefined;
  attribute?: string | undefined;
}

const NARROWED = ["deployment", "environment", "unit", "attribute"] as const;

/** What the server is asked for; `cloud` is a word of the page. */
export function filterOf(search: Filter): ItemFilter {
  const { find, cloud, class: kind, status, compartment, deployment, environment, unit, attribute } = search;
  return { text: find, class: kind, status, compartment, deployment, environment, unit, attribute, ...(cloud ? { rehearsal: cloud === "rehearsal" } : {}) };
}

export function CmdbPage() {
  const may = useMay();
  useCrumbs([{ label: "CMDB" }]);
  const search = useSearch({ strict: false }) as Filter;
  const navigate = useNavigate();
  const [importing, setImporting] = useState(false);
  useItemFeed();
  const tab = search.tab ?? "items";
  const set = (change: Filter) => void navigate({ to: "/cmdb", search: ((before: Filter) => ({ ...before, ...change })) as never, replace: true });
  const refused = may("cmdb:read");
  if (refused) return <div className="page"><Empty title="Items are not yours to see">{refused}</Empty></div>;
  return (
    <div className="page">
      <div className="page-head">
        <h1>CMDB</h1>
        <span className="lead">what this tenant has; runs keep it up to date</span>
        <span className="grow" />
        <Button off={may("cmdb:item:import")} onClick={() => setImporting(true)}>
          Import…
        </Button>
      </div>
      <Tabs
        label="CMDB"
        panel="cmdb-panel"
        value={tab}
        options={[
          { value: "items", label: "Items" },
          { value: "compartments", label: "Compartments" },
          { value: "imports", label: "Imports" },
        ]}
        onChange={(value) => set({ tab: value === "items" ? undefined : value })}
      />
      <div id="cmdb-panel" role="tabpanel" aria-labelledby={`cmdb-panel-${tab}`} className="col" style={{ gap: 12 }}>
        {tab === "items" ? <Items search={search} set={set} /> : null}
        {tab === "compartments" ? <Compartments /> : null}
        {tab === "imports" ? <Imports /> : null}
      </div>
      {importing ? <ImportDialog onClose={() => setImporting(false)} onDone={() => set({ tab: "imports" })} /> : null}
    </div>
  );
}

function columnsOf(compartments: Compartment[]): Column<Item>[] {
  return [
    {
      key: "name",
      head: "Item",
      width: "minmax(180px, 1.2fr)",
      cell: (item) => (
        <span className="row">
          <StatusShape shape={item.status === "active" ? "ok" : "waiting"} label={item.status} />
          <Link to={`/cmdb/resources/${item.id}`} className="link b trunc">
            {item.name}
          </Link>
          {item.rehearsal ? <Rehearsal /> : null}
        </span>
      ),
    },
    { key: "class", head: "Class", width: "minmax(150px, 1fr)", cell: (item) => <span className="mono sec" title={item.class}>{shortType(item.class)}</span> },
    { key: "cloud", head: "Id in the cloud", width: "minmax(120px, 1fr)", cell: (item) => (item.cloud_resource_id ? <span className="mono" title={item.cloud_resource_id}>{item.cloud_resource_id}</span> : <span className="mute">–</span>) },
    { key: "where", head: "From", width: "minmax(150px, 1fr)", cell: (item) => <Origin item={item} /> },
    { key: "compartment", head: "Compartment", width: "minmax(110px, 170px)", cell: (item) => pathOf(item.compartment, compartments) || <span className="mute">none</span> },
    { key: "changed", head: "Changed", width: "100px", right: true, cell: (item) => <Time at={item.updated_at} /> },
  ];
}

/** The unit whose run made it, or that somebody imported it. */
export function Origin({ item }: { item: Item }) {
  if (!item.deployment || !item.environment) return <span className="mute">imported</span>;
  if (!item.unit) return <>{`${item.deployment} in ${item.environment}`}</>;
  const to = `/deployments/${item.deployment}/${item.environment}/units/${item.unit}`;
  return (
    <Link to={to} search={{ kind: item.rehearsal ? "rehearsal" : undefined } as never} className="link">
      {item.unit} of {item.deployment} in {item.environment}
    </Link>
  );
}

function Items({ search, set }: { search: Filter; set: (change: Filter) => void }) {
  const { named } = usePlace();
  const navigate = useNavigate();
  const filter = filterOf(search);
  const pages = useInfiniteQuery(itemsQuery(named, filter));
  const classes = useQuery(classesQuery(named)).data ?? [];
  const compartments = useQuery(compartmentsQuery(named)).data;
  const columns = useMemo(() => columnsOf(compartments ?? []), [compartments]);
  const items = pages.data?.pages.flatMap((page) => page.items);
  const cleared: Filter = { find: undefined, class: undefined, status: undefined, cloud: undefined, compartment: undefined, deployment: undefined, environment: undefined, unit: undefined, attribute: undefined };
  const narrowed = Object.keys(cleared).some((name) => search[name as keyof Filter]);
  return (
    <>
      <div className="filters">
        <input className="input sm" type="search" aria-label="Find items" placeholder="Words of names, ids, attributes" value={search.find ?? ""} onChange={(event) => set({ find: event.target.value || undefined })} />
        <select className="input sm" aria-label="Class" value={search.class ?? ""} onChange={(event) => set({ class: event.target.value || undefined })}>
          <option value="">every class</option>
          {classes.map((one) => (
            <option key={one.name} value={one.name}>
              {one.name}
            </option>
          ))}
        </select>
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
        <Segmented
          label="Status"
          value={search.status ?? "active"}
          options={[
            { value: "active", label: "Active" },
            { value: "decommissioned", label: "Decommissioned" },
            { value: "any", label: "Any" },
          ]}
          onChange={(value) => set({ status: value === "active" ? undefined : value })}
        />
        {NARROWED.map((name) =>
          search[name] ? (
            <button key={name} type="button" className="tag" aria-label={`Not only ${name} ${search[name]}`} onClick={() => set({ [name]: undefined })}>
              {name} {search[name]} ×
            </button>
          ) : null,
        )}
        {search.compartment ? (
          <button type="button" className="tag" aria-label="Not only this compartment" onClick={() => set({ compartment: undefined })}>
            {pathOf(search.compartment, compartments ?? []) || "a compartment"} ×
          </button>
        ) : null}
        <SavedViews page="cmdb" />
      </div>
      {pages.isPending ? <Skeleton /> : null}
      {pages.isError ? <Failed what="Items were not read" error={pages.error} onRetry={() => void pages.refetch()} /> : null}
      {items?.length === 0 ? (
        <Empty
          title={narrowed ? "No item is like that" : "No items yet"}
          action={narrowed ? <button type="button" className="btn sm" onClick={() => set(cleared)}>Clear the filter</button> : null}
        >
          {narrowed ? "Each word begins a word of the name, the id, the class or an attribute." : "When a run ends, everything that it deployed is an item here. What others run can be imported."}
        </Empty>
      ) : null}
      {items && items.length > 0 ? (
        <>
          <DataTable label="Items" columns={columns} rows={items} keyOf={(item) => item.id} onOpen={(item) => void navigate({ to: `/cmdb/resources/${item.id}` })} />
          <p className="mute row">
            {pages.hasNextPage ? `The first ${items.length.toLocaleString("en")} by name.` : `${items.length.toLocaleString("en")} ${items.length === 1 ? "item" : "items"}.`}
            {pages.hasNextPage ? (
              <Button size="sm" busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
                Show more
              </Button>
            ) : null}
          </p>
        </>
      ) : null}
      <section className="section" aria-label="In a terminal">
        <h2>The same in a terminal</h2>
        <CommandLine command={`nimbus cmdb ${search.find ? `search ${search.find}` : `list${search.class ? ` --class ${search.class}` : ""}`}`} />
      </section>
    </>
  );
}

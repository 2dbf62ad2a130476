/** One item: what the cloud says of it, what is around it, and everything that happened to it. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import { call } from "../../api/client";
import type { Schema } from "../../api/client";
import { useTenantAct } from "../../api/queries/access";
import { CMDB, compartmentsQuery, itemHistoryQuery, itemQuery } from "../../api/queries/cmdb";
import type { HistoryEntry, Item } from "../../api/queries/cmdb";
import { ApiError } from "../../api/client";
import { Button } from "../../components/Button";
import { Tabs } from "../../components/Choice";
import { CommandLine, CopyId } from "../../components/Copy";
import { DataTable } from "../../components/DataTable";
import { Field, SelectField } from "../../components/Field";
import { Empty, Failed, Notice, Skeleton } from "../../components/PageState";
import { StatusPill } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useNames } from "../../modules/approvals/useApprovals";
import { changeLines, valueText } from "../../modules/cmdb/around";
import { useItemFeed } from "../../modules/cmdb/useItemFeed";
import { shortType } from "../../modules/runs/ResourceTree";
import { Rehearsal } from "../../modules/runs/RunTable";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { FormDialog } from "../access/parts";
import { NotFound } from "../SignedIn";
import { Origin } from "./CmdbPage";
import { pathOf } from "./Compartments";
import { Relationships } from "./Relationships";

type Tab = "attributes" | "relationships" | "history";

export function ItemPage() {
  const { item: id = "" } = useParams({ strict: false }) as { item?: string };
  const search = useSearch({ strict: false }) as { tab?: Tab; depth?: string; only?: string };
  const navigate = useNavigate();
  const { named } = usePlace();
  const may = useMay();
  const found = useQuery(itemQuery(named, id));
  const compartments = useQuery(compartmentsQuery(named)).data ?? [];
  const [asked, setAsked] = useState<"move" | "relate" | null>(null);
  const path = { ci: id };
  const move = useTenantAct<string>([CMDB], (compartment) => call("PATCH /api/v1/cmdb/items/{ci}", { path, query: { tenant: named }, body: { compartment: compartment || null } }));
  const relate = useTenantAct<Schema<"RelateItems">>([CMDB], (body) => call("POST /api/v1/cmdb/relationships", { query: { tenant: named }, body }));
  useItemFeed();
  useCrumbs([{ label: "CMDB", to: "/cmdb" }, { label: found.data?.name ?? "Item" }]);
  const set = (change: object) => void navigate({ to: `/cmdb/resources/${id}`, search: ((before: object) => ({ ...before, ...change })) as never, replace: true });
  if (found.error instanceof ApiError && [403, 404, 422].includes(found.error.status)) return <NotFound />;
  if (!found.data) {
    return (
      <div className="page">
        {found.isError ? <Failed what="The item was not read" error={found.error} onRetry={() => void found.refetch()} /> : <Skeleton />}
      </div>
    );
  }
  const item = found.data;
  const tab = search.tab ?? "attributes";
  return (
    <div className="page">
      <div className="page-head">
        <h1>{item.name}</h1>
        <StatusPill shape={item.status === "active" ? "ok" : "waiting"}>{item.status === "active" ? "Active" : "Decommissioned"}</StatusPill>
        {item.rehearsal ? <Rehearsal /> : null}
        <span className="lead mono">{shortType(item.class)}</span>
        <span className="grow" />
        <Button off={may("cmdb:write")} onClick={() => setAsked("move")}>
          Move…
        </Button>
        <Button off={may("cmdb:write")} onClick={() => setAsked("relate")}>
          Relate…
        </Button>
      </div>
      <Facts item={item} compartment={pathOf(item.compartment, compartments)} />
      <Tabs
        label="Item"
        panel="item-panel"
        value={tab}
        options={[
          { value: "attributes", label: "Attributes", count: Object.keys(item.attributes).length },
          { value: "relationships", label: "Relationships" },
          { value: "history", label: "History", count: item.revision },
        ]}
        onChange={(value) => set({ tab: value === "attributes" ? undefined : value })}
      />
      <div id="item-panel" role="tabpanel" aria-labelledby={`item-panel-${tab}`} className="col" style={{ gap: 12 }}>
        {tab === "attributes" ? <Attributes item={item} /> : null}
        {tab === "relationships" ? <Relationships item={item} depth={search.depth} only={search.only} set={set} /> : null}
        {tab === "history" ? <History item={item} /> : null}
      </div>
      <section className="section" aria-label="In a terminal">
        <h2>The same in a terminal</h2>
        <CommandLine command={`nimbus cmdb ${tab === "relationships" ? "graph" : tab === "history" ? "history" : "show"} ${item.id}`} />
      </section>
      {asked === "move" ? (
        <FormDialog title={`Move ${item.name}`} verb="Move" act={move} onClose={() => setAsked(null)} onDone={() => setAsked(null)} input={(values) => values["compartment"] ?? ""}>
          {(problem) => (
            <SelectField label="Compartment" name="compartment" defaultValue={item.compartment ?? ""} problem={problem("compartment")} hint="Runs leave it where you put it.">
              <option value="">none</option>
              {compartments.map((one) => (
                <option key={one.id} value={one.id}>
                  {pathOf(one.id, compartments)}
                </option>
              ))}
            </SelectField>
          )}
        </FormDialog>
      ) : null}
      {asked === "relate" ? (
        <FormDialog
          title={`Relate ${item.name}`}
          verb="Relate"
          act={relate}
          onClose={() => setAsked(null)}
          onDone={() => {
            setAsked(null);
            set({ tab: "relationships" });
          }}
          input={(values) => ({ source: item.id, relationship: (values["relationship"] ?? "").trim(), target: (values["target"] ?? "").trim() })}
        >
          {(problem) => (
            <>
              <Field label="Relationship" name="relationship" required placeholder="backs_up" problem={problem("relationship")} hint="What this item does to the other, in one word." />
              <Field label="Id of the other item" name="target" required problem={problem("target")} hint="Copy it from the other item's page." />
            </>
          )}
        </FormDialog>
      ) : null}
    </div>
  );
}

function Facts({ item, compartment }: { item: Item; compartment: string }) {
  const facts: [string, React.ReactNode][] = [
    ["Class", <span key="c" className="mono">{item.class}</span>],
    ["Id in the cloud", item.cloud_resource_id ? <CopyId key="i" text={item.cloud_resource_id} label={item.cloud_resource_id} /> : "–"],
    ["From", <Origin key="o" item={item} />],
    ["Compartment", compartment || "none"],
    ["Item", <CopyId key="id" text={item.id} label={item.id} />],
    ["Changed", <Time key="t" at={item.updated_at} />],
    ...(item.semantic_type ? ([["Semantic type", item.semantic_type]] as [string, React.ReactNode][]) : []),
    ...(item.run ? ([["Last run", <Link key="r" to={`/runs/${item.run}`} className="link">open</Link>]] as [string, React.ReactNode][]) : []),
    ...(item.external ? ([["Managed", "by somebody else; read by a program"]] as [string, React.ReactNode][]) : []),
  ];
  return (
    <dl className="pairs card pad-grid two">
      {facts.map(([name, value]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>{name}</dt>
          <dd className="wrap-text">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Attributes({ item }: { item: Item }) {
  const [find, setFind] = useState("");
  const rows = Object.entries(item.attributes)
    .map(([name, value]) => ({ name, text: valueText(value) }))
    .filter(({ name, text }) => `${name} ${text}`.toLowerCase().includes(find.toLowerCase()))
    .sort((a, b) => a.name.localeCompare(b.name));
  if (Object.keys(item.attributes).length === 0) return <Empty title="It says nothing of itself">Values that are secret are never kept here.</Empty>;
  return (
    <>
      <div className="filters">
        <input className="input sm" type="search" aria-label="Filter attributes" placeholder="Filter by name or value" value={find} onChange={(event) => setFind(event.target.value)} />
        <span className="mute small">Secrets are left out, wherever they stand.</span>
      </div>
      {rows.length > 0 ? (
        <DataTable
          label="Attributes"
          rows={rows}
          keyOf={(row) => row.name}
          columns={[
            { key: "name", head: "Attribute", width: "minmax(160px, 280px)", cell: (row) => <span className="mono">{row.name}</span> },
            { key: "value", head: "Value", width: "minmax(240px, 1fr)", cell: (row) => <span className="mono sec" title={row.text}>{row.text}</span> },
          ]}
        />
      ) : (
        <Empty title="No attribute is like that" action={<button type="button" className="btn sm" onClick={() => setFind("")}>Clear the filter</button>} />
      )}
      {item.left_out && item.left_out.length > 0 ? <Notice>Too large to be kept here, and in the state: {item.left_out.join(", ")}.</Notice> : null}
    </>
  );
}

const CHANGED: Record<string, string> = {
  created: "Created",
  updated: "Changed",
  decommissioned: "Decommissioned",
  recommissioned: "Back in use",
  moved: "Moved",
};

function History({ item }: { item: Item }) {
  const { named } = usePlace();
  const names = useNames();
  const pages = useInfiniteQuery(itemHistoryQuery(named, item.id));
  const entries = pages.data?.pages.flatMap((page) => page.items);
  return (
    <>
      {pages.isPending ? <Skeleton rows={3} /> : null}
      {pages.isError ? <Failed what="The history was not read" error={pages.error} onRetry={() => void pages.refetch()} /> : null}
      <ol className="chain" aria-label="History">
        {entries?.map((entry) => (
          <HistoryCard key={entry.revision} entry={entry} who={entry.user ? names.user(entry.user) : null} />
        ))}
      </ol>
      {pages.hasNextPage ? (
        <p>
          <Button size="sm" busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Show more
          </Button>
        </p>
      ) : null}
    </>
  );
}

function HistoryCard({ entry, who }: { entry: HistoryEntry; who: string | null }) {
  const lines = entry.change === "created" ? [] : changeLines(entry.changes);
  return (
    <li className="card pad">
      <div className="row wrap">
        <span className="tag num">{entry.revision}</span>
        <span className="b">{CHANGED[entry.change] ?? entry.change}</span>
        {who ? <span className="sec">by {who}</span> : null}
        {entry.run ? (
          <Link to={`/runs/${entry.run}`} className="link">
            by a run
          </Link>
        ) : null}
        <span className="grow" />
        <Time at={entry.at} />
      </div>
      {lines.length > 0 ? (
        <dl className="props">
          {lines.map((line) => (
            <div key={line.path} className="prop">
              <dt className="trunc" title={line.path}>
                {line.path}
              </dt>
              <dd className={line.before === "none" ? "mute" : "old"} title={line.before}>
                <span className="hidden-text">was </span>
                {line.before}
              </dd>
              <dd className="mute" aria-hidden>
                →
              </dd>
              <dd className={line.after === "none" ? "mute" : "new"} title={line.after}>
                <span className="hidden-text">became </span>
                <span className="trunc">{line.after}</span>
              </dd>
            </div>
          ))}
        </dl>
      ) : null}
    </li>
  );
}

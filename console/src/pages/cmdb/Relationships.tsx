/** What is around an item: a graph as far as asked, and the same as a table. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { call } from "../../api/client";
import { useTenantAct } from "../../api/queries/access";
import { CMDB, itemGraphQuery } from "../../api/queries/cmdb";
import type { Item } from "../../api/queries/cmdb";
import { Button } from "../../components/Button";
import { Segmented } from "../../components/Choice";
import { DataTable } from "../../components/DataTable";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { useSay } from "../../components/Toasts";
import { DRAWN, narrowed } from "../../modules/cmdb/around";
import { ItemGraphView } from "../../modules/cmdb/ItemGraphView";
import { shortType } from "../../modules/runs/ResourceTree";
import { useMay, usePlace } from "../../modules/shell/context";

const FIRST = 60;
const DEPTHS = ["1", "2", "3", "4", "5"];

interface Props {
  item: Item;
  depth: string | undefined;
  /** Only relationships of this kind. */
  only: string | undefined;
  set: (change: object) => void;
}

export function Relationships({ item, depth = "2", only, set }: Props) {
  const { named } = usePlace();
  const may = useMay();
  const say = useSay();
  const [most, setMost] = useState(FIRST);
  const found = useQuery(itemGraphQuery(named, item.id, Number(depth) || 2, most));
  const remove = useTenantAct<string>([CMDB], (relationship) => call("DELETE /api/v1/cmdb/relationships/{relationship}", { path: { relationship }, query: { tenant: named } }));
  const kinds = useMemo(() => [...new Set(found.data?.relationships.map((one) => one.relationship))].sort(), [found.data]);
  const graph = useMemo(() => (found.data ? narrowed(found.data, item.id, only) : null), [found.data, item.id, only]);
  const items = useMemo(() => new Map(graph?.items.map(({ item: one }) => [one.id, one])), [graph]);
  const name = (id: string) => {
    const one = items.get(id);
    if (id === item.id) return <span className="b">{item.name}</span>;
    return (
      <span className="row">
        <Link to={`/cmdb/resources/${id}`} search={{ tab: "relationships" } as never} className="link trunc">
          {one?.name ?? id}
        </Link>
        {one ? <span className="mono mute trunc">{shortType(one.class)}</span> : null}
      </span>
    );
  };
  return (
    <>
      <div className="filters">
        <span className="mute">How far</span>
        <Segmented label="How far" value={depth} options={DEPTHS.map((value) => ({ value, label: value }))} onChange={(value) => set({ depth: value === "2" ? undefined : value })} />
        {kinds.length > 1 || only ? (
          <Segmented
            label="Kind of relationship"
            value={only ?? ""}
            options={[{ value: "", label: "All" }, ...kinds.map((value) => ({ value, label: value.replaceAll("_", " ") }))]}
            onChange={(value) => set({ only: value || undefined })}
          />
        ) : null}
        {graph ? (
          <span className="mute num">
            {graph.items.length.toLocaleString("en")} {graph.items.length === 1 ? "item" : "items"}
            {graph.complete ? "" : ", and more"}
          </span>
        ) : null}
        {found.data && !found.data.complete && most < DRAWN ? (
          <Button size="sm" busy={found.isFetching} onClick={() => setMost(DRAWN)}>
            Show up to {DRAWN}
          </Button>
        ) : null}
      </div>
      {found.isPending ? <Skeleton rows={4} /> : null}
      {found.isError ? <Failed what="Relationships were not read" error={found.error} onRetry={() => void found.refetch()} /> : null}
      {graph && graph.relationships.length === 0 ? <Empty title="Nothing is known to be around it">Runs say what contains what and what depends on what; people and imports add the rest.</Empty> : null}
      {graph && graph.relationships.length > 0 ? (
        <>
          <ItemGraphView graph={graph} root={item.id} />
          <div id="relationships">
            <DataTable
              label="Relationships"
              rows={graph.relationships}
              keyOf={(one) => one.id}
              columns={[
                { key: "source", head: "Item", width: "minmax(180px, 1fr)", cell: (one) => name(one.source) },
                { key: "relationship", head: "Relationship", width: "140px", cell: (one) => one.relationship.replaceAll("_", " ") },
                { key: "target", head: "Other item", width: "minmax(180px, 1fr)", cell: (one) => name(one.target) },
                { key: "said", head: "Said by", width: "100px", cell: (one) => <span className="sec">{one.said_by === "person" ? "a person" : one.said_by === "run" ? "a run" : "an import"}</span> },
                {
                  key: "remove",
                  head: "",
                  width: "100px",
                  right: true,
                  cell: (one) =>
                    one.said_by === "person" ? (
                      <Button
                        size="sm"
                        kind="danger"
                        off={may("cmdb:write")}
                        onClick={() => remove.mutate(one.id, { onSuccess: () => say("The relationship is taken back."), onError: (error) => say(error.message, true) })}
                      >
                        Take back
                      </Button>
                    ) : null,
                },
              ]}
            />
          </div>
        </>
      ) : null}
    </>
  );
}

/** Folders for items: a tree, and a way to add one. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { call } from "../../api/client";
import type { Schema } from "../../api/client";
import { useTenantAct } from "../../api/queries/access";
import { CMDB, compartmentsQuery } from "../../api/queries/cmdb";
import type { Compartment } from "../../api/queries/cmdb";
import { Button } from "../../components/Button";
import { DataTable } from "../../components/DataTable";
import { Field, SelectField } from "../../components/Field";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { Time } from "../../components/Time";
import { useMay, usePlace } from "../../modules/shell/context";
import { FormDialog } from "../access/parts";

/** From the outermost to the compartment itself, `shop/dev`. */
export function pathOf(id: string | null | undefined, all: Compartment[]): string {
  const names: string[] = [];
  let at = all.find((one) => one.id === id);
  // A tree that says of itself to be its own parent is shown once.
  while (at && names.length <= all.length) {
    names.unshift(at.name);
    const parent: string | null | undefined = at.parent;
    at = all.find((one) => one.id === parent);
  }
  return names.join("/");
}

export function Compartments() {
  const { named } = usePlace();
  const may = useMay();
  const found = useQuery(compartmentsQuery(named));
  const [making, setMaking] = useState(false);
  const create = useTenantAct<Schema<"AddCompartment">>([CMDB], (body) => call("POST /api/v1/cmdb/compartments", { query: { tenant: named }, body }));
  const all = found.data ?? [];
  const rows = all.map((one) => ({ one, path: pathOf(one.id, all) })).sort((a, b) => a.path.localeCompare(b.path));
  const button = (
    <Button size="sm" off={may("cmdb:write")} onClick={() => setMaking(true)}>
      New compartment
    </Button>
  );
  return (
    <>
      <div className="filters">{button}</div>
      {found.isPending ? <Skeleton rows={3} /> : null}
      {found.isError ? <Failed what="Compartments were not read" error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.data?.length === 0 ? <Empty title="No compartments yet">Runs put their items into one for each project and environment.</Empty> : null}
      {rows.length > 0 ? (
        <DataTable
          label="Compartments"
          rows={rows}
          keyOf={({ one }) => one.id}
          columns={[
            {
              key: "name",
              head: "Compartment",
              width: "minmax(200px, 1fr)",
              cell: ({ one, path }) => (
                <span style={{ paddingLeft: (path.split("/").length - 1) * 18 }}>
                  <Link to="/cmdb" search={{ compartment: one.id } as never} className="link b" aria-label={`Items in ${path}`}>
                    {one.name}
                  </Link>
                </span>
              ),
            },
            { key: "path", head: "Path", width: "minmax(160px, 1fr)", cell: ({ path }) => <span className="mono sec">{path}</span> },
            { key: "provider", head: "Cloud", width: "110px", cell: ({ one }) => one.provider ?? <span className="mute">–</span> },
            { key: "made", head: "Made", width: "110px", right: true, cell: ({ one }) => <Time at={one.created_at} /> },
          ]}
        />
      ) : null}
      {making ? (
        <FormDialog
          title="New compartment"
          verb="Create"
          act={create}
          onClose={() => setMaking(false)}
          onDone={() => setMaking(false)}
          input={(values) => ({ name: values["name"] ?? "", ...(values["parent"] ? { parent: values["parent"] } : {}) })}
        >
          {(problem) => (
            <>
              <Field label="Name" name="name" required problem={problem("name")} />
              <SelectField label="In" name="parent" problem={problem("parent")}>
                <option value="">at the top</option>
                {rows.map(({ one, path }) => (
                  <option key={one.id} value={one.id}>
                    {path}
                  </option>
                ))}
              </SelectField>
            </>
          )}
        </FormDialog>
      ) : null}
    </>
  );
}

/** The tree of tenants, and one tenant: its settings, its limits, what is inherited. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";

import { call } from "../../api/client";
import type { Schema } from "../../api/client";
import { deletedTenantsQuery, effectiveQuery, useTenantAct } from "../../api/queries/access";
import { tenantsQuery } from "../../api/queries/session";
import type { Tenant } from "../../api/queries/session";
import { Button } from "../../components/Button";
import { CopyId } from "../../components/Copy";
import { DataTable } from "../../components/DataTable";
import { Field, SelectField } from "../../components/Field";
import { Failed, Skeleton } from "../../components/PageState";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { labelOf, useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { Tile } from "../../modules/shell/TenantSwitcher";
import { NotFound } from "../SignedIn";
import { ConfirmDialog, FormDialog } from "./parts";

interface Branch {
  tenant: Tenant;
  depth: number;
}

export function treeOf(tenants: Tenant[]): Branch[] {
  const ids = new Set(tenants.map((tenant) => tenant.id));
  const below = new Map<string, Tenant[]>();
  for (const tenant of tenants) {
    const parent = tenant.parent_id && ids.has(tenant.parent_id) ? tenant.parent_id : "";
    below.set(parent, [...(below.get(parent) ?? []), tenant]);
  }
  const walk = (parent: string, depth: number): Branch[] =>
    (below.get(parent) ?? [])
      .sort((a, b) => labelOf(a).localeCompare(labelOf(b)))
      .flatMap((tenant) => [{ tenant, depth }, ...walk(tenant.id, depth + 1)]);
  return walk("", 0);
}

export function TenantsPage() {
  const { tenant: here } = usePlace();
  const may = useMay();
  const say = useSay();
  const navigate = useNavigate();
  useCrumbs([{ label: "Tenants" }]);
  const tenants = useQuery(tenantsQuery);
  const [making, setMaking] = useState(false);
  const create = useTenantAct<Schema<"NewTenant"> & { parent: string }>(["tenants"], ({ parent, ...body }) =>
    call("POST /api/v1/tenants/{tenant}/tenants", { path: { tenant: parent }, body }),
  );
  const rows = treeOf(tenants.data ?? []);
  return (
    <div className="page">
      <div className="page-head">
        <h1>Tenants</h1>
        <span className="lead">{rows.length} that you see</span>
        <span className="grow" />
        <Button kind="pri" off={may("tenant:definition:create")} onClick={() => setMaking(true)}>
          New tenant
        </Button>
      </div>
      {tenants.isPending ? <Skeleton /> : null}
      {tenants.isError ? <Failed what="Tenants were not read" error={tenants.error} onRetry={() => void tenants.refetch()} /> : null}
      {rows.length > 0 ? (
        <DataTable
          label="Tenants"
          rows={rows}
          keyOf={(row) => row.tenant.id}
          onOpen={(row) => void navigate({ to: `/tenants/${row.tenant.id}` })}
          columns={[
            {
              key: "name",
              head: "Tenant",
              width: "minmax(220px, 1fr)",
              cell: ({ tenant, depth }) => (
                <span className="row" style={{ paddingLeft: depth * 20 }}>
                  <Tile tenant={tenant} />
                  <Link to={`/tenants/${tenant.id}`} className="link b">
                    {labelOf(tenant)}
                  </Link>
                  {tenant.id === here.id ? <span className="tag">here</span> : null}
                </span>
              ),
            },
            { key: "slug", head: "Slug", width: "minmax(100px, 160px)", cell: ({ tenant }) => <span className="mono">{tenant.slug || "–"}</span> },
            { key: "kept", head: "Kept apart by", width: "120px", cell: ({ tenant }) => tenant.isolation_type },
            {
              key: "limits",
              head: "Own limits",
              width: "minmax(120px, 220px)",
              cell: ({ tenant }) => {
                const own = Object.entries((tenant.quotas ?? {}) as Record<string, number>);
                return own.length === 0 ? <span className="mute">inherited</span> : <span className="num">{own.map(([name, limit]) => `${name} ${limit}`).join(", ")}</span>;
              },
            },
            { key: "made", head: "Made", width: "110px", right: true, cell: ({ tenant }) => <Time at={tenant.created_at} /> },
          ]}
        />
      ) : null}
      {may("tenant:definition:delete") === null ? <DeletedTenants below={here.id} /> : null}
      {making ? (
        <FormDialog
          title="New tenant"
          verb="Create"
          act={create}
          onClose={() => setMaking(false)}
          onDone={() => {
            setMaking(false);
            say("The tenant is there, with a schema and a data key of its own.");
          }}
          input={(values) => ({ parent: values["parent"] ?? here.id, name: values["name"] ?? "", slug: values["slug"] ?? "" })}
        >
          {(problem) => (
            <>
              <Field label="Name" name="name" required problem={problem("name")} />
              <Field label="Slug" name="slug" required pattern="[a-z0-9-]+" hint="Small letters, digits and -; part of addresses." problem={problem("slug")} />
              <SelectField label="Below" name="parent" defaultValue={here.id}>
                {rows.map(({ tenant, depth }) => (
                  <option key={tenant.id} value={tenant.id}>
                    {`${"\u00a0\u00a0".repeat(depth)}${labelOf(tenant)}`}
                  </option>
                ))}
              </SelectField>
            </>
          )}
        </FormDialog>
      ) : null}
    </div>
  );
}

/** Tenants that were deleted and can still be had back. */
function DeletedTenants({ below }: { below: string }) {
  const say = useSay();
  const deleted = useQuery(deletedTenantsQuery(below));
  const restore = useTenantAct<string>(["tenants", "deleted-tenants"], (id) =>
    call("POST /api/v1/tenants/{tenant}/deleted/{deleted}/restore", { path: { tenant: below, deleted: id } }),
  );
  if (!deleted.data || deleted.data.length === 0) return null;
  return (
    <section className="section" aria-label="Deleted">
      <h2>Deleted, and not gone yet</h2>
      <DataTable
        label="Deleted tenants"
        rows={deleted.data}
        keyOf={(tenant) => tenant.id}
        columns={[
          { key: "name", head: "Tenant", width: "minmax(200px, 1fr)", cell: (tenant) => <span className="b">{labelOf(tenant)}</span> },
          { key: "slug", head: "Slug", width: "minmax(100px, 160px)", cell: (tenant) => <span className="mono">{tenant.slug}</span> },
          { key: "at", head: "Deleted", width: "120px", cell: (tenant) => <Time at={tenant.deleted_at} /> },
          { key: "gone", head: "Gone", width: "120px", cell: (tenant) => <Time at={tenant.gone_at} /> },
          {
            key: "restore",
            head: "",
            width: "100px",
            right: true,
            cell: (tenant) => (
              <Button
                size="sm"
                busy={restore.isPending}
                aria-label={`Restore ${labelOf(tenant)}`}
                onClick={() => restore.mutate(tenant.id, { onSuccess: () => say(`${labelOf(tenant)} is back.`), onError: (error) => say(error.message, true) })}
              >
                Restore
              </Button>
            ),
          },
        ]}
      />
    </section>
  );
}

export function TenantPage() {
  const { tenant: id = "" } = useParams({ strict: false }) as { tenant?: string };
  const { tenants, me } = usePlace();
  const may = useMay();
  const say = useSay();
  const navigate = useNavigate();
  const tenant = tenants.find((one) => one.id === id);
  const effective = useQuery(effectiveQuery(id));
  const [asked, setAsked] = useState<"rename" | "quota" | "delete" | null>(null);
  useCrumbs([{ label: "Tenants", to: "/tenants" }, { label: tenant ? labelOf(tenant) : id }]);
  const rename = useTenantAct<string>(["tenants", "me"], (name) => call("PATCH /api/v1/tenants/{tenant}", { path: { tenant: id }, body: { name } }));
  const limits = useTenantAct<Record<string, number>>(["effective", "tenants"], (quotas) => call("PUT /api/v1/tenants/{tenant}/quotas", { path: { tenant: id }, body: { quotas } }));
  const remove = useTenantAct<undefined>(["tenants", "deleted-tenants"], () => call("DELETE /api/v1/tenants/{tenant}", { path: { tenant: id } }));
  if (!tenant) return <NotFound />;
  const own = (tenant.quotas ?? {}) as Record<string, number>;
  return (
    <div className="page">
      <div className="page-head">
        <Tile tenant={tenant} />
        <h1>{labelOf(tenant)}</h1>
        <CopyId text={tenant.id} label={tenant.slug || "id"} />
        <span className="grow" />
        <Link to="/" search={{ t: tenant.id === me.tenant.id ? undefined : tenant.slug || tenant.id } as never} className="btn">
          Go there
        </Link>
        <Button off={may("tenant:definition:update")} onClick={() => setAsked("rename")}>
          Rename…
        </Button>
        <Button kind="danger" off={tenant.id === me.tenant.id ? "You are in this tenant." : may("tenant:definition:delete")} onClick={() => setAsked("delete")}>
          Delete…
        </Button>
      </div>
      <section className="section" aria-label="Limits">
        <div className="row">
          <h2 className="h2">Limits</h2>
          <span className="grow" />
          <Button size="sm" off={may("tenant:quota:manage")} onClick={() => setAsked("quota")}>
            Set a limit…
          </Button>
        </div>
        {effective.data && effective.data.quotas.length > 0 ? (
          <DataTable
            label="Limits"
            rows={effective.data.quotas}
            keyOf={(quota) => quota.resource}
            columns={[
              { key: "what", head: "What", width: "minmax(160px, 1fr)", cell: (quota) => quota.resource },
              { key: "bar", head: "Of the limit", width: "minmax(120px, 220px)", cell: (quota) => <meter min={0} max={Math.max(1, quota.quota)} value={quota.used} aria-label={`${quota.resource}: ${quota.used} of ${quota.quota}`} /> },
              { key: "used", head: "Used", width: "90px", right: true, cell: (quota) => <span className="num">{quota.used}</span> },
              { key: "limit", head: "Limit", width: "90px", right: true, cell: (quota) => <span className="num">{quota.quota}</span> },
              { key: "from", head: "From", width: "140px", cell: (quota) => (quota.inherited ? "further up" : "here") },
            ]}
          />
        ) : (
          <p className="mute">No limit is set here or further up.</p>
        )}
      </section>
      <section className="section" aria-label="Settings">
        <h2>Settings in force</h2>
        {effective.data && effective.data.settings.length > 0 ? (
          <DataTable
            label="Settings in force"
            rows={effective.data.settings}
            keyOf={(setting) => setting.key}
            columns={[
              { key: "key", head: "Setting", width: "minmax(160px, 1fr)", cell: (setting) => <span className="mono">{setting.key}</span> },
              { key: "value", head: "Value", width: "minmax(120px, 1fr)", cell: (setting) => <span className="mono">{JSON.stringify(setting.value)}</span> },
              { key: "from", head: "From", width: "140px", cell: (setting) => (setting.inherited ? "further up" : "here") },
            ]}
          />
        ) : (
          <p className="mute">No setting differs from the defaults.</p>
        )}
      </section>
      {asked === "rename" ? (
        <FormDialog title={`Rename ${labelOf(tenant)}`} verb="Rename" act={rename} input={(values) => values["name"] ?? ""} onClose={() => setAsked(null)} onDone={() => setAsked(null)}>
          {(problem) => <Field label="Name" name="name" required defaultValue={tenant.name} problem={problem("name")} />}
        </FormDialog>
      ) : null}
      {asked === "quota" ? (
        <FormDialog
          title="Set a limit"
          verb="Set"
          act={limits}
          input={(values) => ({ ...own, [values["resource"] ?? ""]: Number(values["limit"]) })}
          onClose={() => setAsked(null)}
          onDone={() => setAsked(null)}
        >
          {(problem) => (
            <>
              <Field label="What" name="resource" required placeholder="users" problem={problem("quotas")} />
              <Field label="Limit" name="limit" type="number" min={0} required />
            </>
          )}
        </FormDialog>
      ) : null}
      {asked === "delete" ? (
        <ConfirmDialog
          title={`Delete ${labelOf(tenant)}`}
          word={tenant.slug}
          verb="Delete the tenant"
          busy={remove.isPending}
          error={remove.error}
          onClose={() => setAsked(null)}
          onConfirm={() =>
            remove.mutate(undefined, {
              onSuccess: () => {
                say("The tenant is deleted. It can be restored for a while.");
                void navigate({ to: "/tenants" });
              },
            })
          }
        >
          <p>Its users, deployments and state go with it, and so do the tenants below it. It can be restored for a while; after that nothing of it is left.</p>
        </ConfirmDialog>
      ) : null}
    </div>
  );
}

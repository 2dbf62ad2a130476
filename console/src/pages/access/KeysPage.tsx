/** Service accounts and their keys. A key's secret is shown once, when it is made. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { call } from "../../api/client";
import type { Schema } from "../../api/client";
import { keysQuery, permissionsQuery, rolesQuery, useTenantAct, usersQuery } from "../../api/queries/access";
import type { ApiKey } from "../../api/queries/access";
import { Button } from "../../components/Button";
import { CommandLine } from "../../components/Copy";
import { DataTable } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Field, SelectField } from "../../components/Field";
import { Empty, Failed, Notice, Skeleton } from "../../components/PageState";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { FormDialog } from "./parts";

export function KeysPage() {
  const { tenant } = usePlace();
  const may = useMay();
  const say = useSay();
  useCrumbs([{ label: "Service accounts" }]);
  const keys = useQuery(keysQuery(tenant.id));
  const users = useQuery(usersQuery(tenant.id)).data ?? [];
  const roles = useQuery(rolesQuery(tenant.id)).data ?? [];
  const permissions = useQuery(permissionsQuery).data ?? [];
  const accounts = users.filter((user) => user.kind !== "user");
  const [asked, setAsked] = useState<"account" | "key" | null>(null);
  const [made, setMade] = useState<ApiKey | null>(null);
  const path = { tenant: tenant.id };
  const createAccount = useTenantAct<{ name: string; role: string }>(["users", "assignments"], async ({ name, role }) => {
    const user = await call("POST /api/v1/tenants/{tenant}/users", { path, body: { email: name, display_name: name, service_account: true } });
    if (role) await call("POST /api/v1/tenants/{tenant}/role-assignments", { path, body: { role, user_id: user.id } });
  });
  const createKey = useTenantAct<Schema<"NewKey">, ApiKey>(["keys"], (body) => call("POST /api/v1/tenants/{tenant}/keys", { path, body }));
  const revoke = useTenantAct<string>(["keys"], (key) => call("DELETE /api/v1/tenants/{tenant}/keys/{key}", { path: { ...path, key } }));
  const nameOf = (id: string) => users.find((user) => user.id === id)?.display_name || users.find((user) => user.id === id)?.email || id;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Service accounts</h1>
        <span className="lead">for pipelines and programs</span>
        <span className="grow" />
        <Button off={may("users:account:create")} onClick={() => setAsked("account")}>
          New service account
        </Button>
        <Button kind="pri" off={may("users:key:manage") ?? (accounts.length === 0 ? "Make a service account first." : null)} onClick={() => setAsked("key")}>
          New key
        </Button>
      </div>
      <section className="section" aria-label="Accounts">
        <h2>Accounts</h2>
        {accounts.length === 0 ? (
          <Empty title="No service accounts yet">A pipeline signs in with a key of a service account, never with a person's password.</Empty>
        ) : (
          <DataTable
            label="Accounts"
            rows={accounts}
            keyOf={(user) => user.id}
            columns={[
              { key: "name", head: "Account", width: "minmax(160px, 1fr)", cell: (user) => <span className="b">{user.display_name || user.email}</span> },
              { key: "keys", head: "Keys", width: "80px", right: true, cell: (user) => <span className="num">{keys.data?.filter((key) => key.user_id === user.id).length ?? 0}</span> },
              { key: "made", head: "Made", width: "110px", right: true, cell: (user) => <Time at={user.created_at} /> },
            ]}
          />
        )}
      </section>
      <section className="section" aria-label="Keys">
        <h2>Keys</h2>
        {keys.isPending ? <Skeleton rows={3} /> : null}
        {keys.isError ? <Failed what="Keys were not read" error={keys.error} onRetry={() => void keys.refetch()} /> : null}
        {keys.data?.length === 0 ? <p className="mute">No keys.</p> : null}
        {keys.data && keys.data.length > 0 ? (
          <DataTable
            label="Keys"
            rows={keys.data}
            keyOf={(key) => key.id}
            columns={[
              { key: "name", head: "Key", width: "minmax(120px, 160px)", cell: (key) => <span className="b">{key.name}</span> },
              { key: "account", head: "Account", width: "minmax(120px, 160px)", cell: (key) => nameOf(key.user_id) },
              { key: "scopes", head: "May", width: "minmax(160px, 1fr)", cell: (key) => <span className="mono">{key.scopes.join(", ")}</span> },
              { key: "used", head: "Last used", width: "110px", cell: (key) => <Time at={key.last_used_at} /> },
              { key: "until", head: "Until", width: "110px", cell: (key) => <Time at={key.expires_at} /> },
              {
                key: "revoke",
                head: "",
                width: "90px",
                right: true,
                cell: (key) => (
                  <Button size="sm" kind="danger" off={may("users:key:manage")} onClick={() => revoke.mutate(key.id, { onSuccess: () => say(`${key.name} works no longer.`), onError: (error) => say(error.message, true) })}>
                    Revoke
                  </Button>
                ),
              },
            ]}
          />
        ) : null}
      </section>
      {asked === "account" ? (
        <FormDialog title="New service account" verb="Create" act={createAccount} onClose={() => setAsked(null)} onDone={() => setAsked(null)} input={(values) => ({ name: values["name"] ?? "", role: values["role"] ?? "" })}>
          {(problem) => (
            <>
              <Field label="Name" name="name" required placeholder="pipeline" problem={problem("email") ?? problem("display_name")} />
              <SelectField label="Role" name="role">
                <option value="">none yet</option>
                {roles.map((role) => (
                  <option key={role.name}>{role.name}</option>
                ))}
              </SelectField>
            </>
          )}
        </FormDialog>
      ) : null}
      {asked === "key" ? (
        <FormDialog
          title="New key"
          verb="Create"
          act={createKey}
          onClose={() => setAsked(null)}
          onDone={(output) => {
            setAsked(null);
            setMade(output as ApiKey);
          }}
          input={(values) => ({
            service_account_id: values["account"] ?? "",
            name: values["name"] ?? "",
            scopes: (values["scopes"] ?? "").split(",").filter(Boolean),
            expires_in_days: Number(values["days"]),
          })}
        >
          {(problem) => (
            <>
              <SelectField label="Service account" name="account">
                {accounts.map((user) => (
                  <option key={user.id} value={user.id}>
                    {user.display_name || user.email}
                  </option>
                ))}
              </SelectField>
              <Field label="Name" name="name" required placeholder="ci" problem={problem("name")} />
              <Field label="Days" name="days" type="number" min={1} max={3650} defaultValue={90} required problem={problem("expires_in_days")} />
              <fieldset style={{ border: 0, padding: 0, margin: 0 }}>
                <legend className="label">May</legend>
                <div style={{ maxHeight: 200, overflow: "auto" }} tabIndex={0} role="group" aria-label="May">
                  {permissions.map((one) => (
                    <label key={one.key} className="tick">
                      <input type="checkbox" name="scopes" value={one.key} />
                      <span className="mono">{one.key}</span>
                    </label>
                  ))}
                </div>
              </fieldset>
              {problem("scopes") ? <p className="problem">{problem("scopes")}</p> : null}
            </>
          )}
        </FormDialog>
      ) : null}
      {made ? (
        <Dialog title={`Key ${made.name}`} onClose={() => setMade(null)} foot={<Button kind="pri" onClick={() => setMade(null)}>I have stored it</Button>}>
          <Notice tone="warn">This is the only time that the secret is shown.</Notice>
          <CommandLine command={made.secret ?? ""} />
        </Dialog>
      ) : null}
    </div>
  );
}

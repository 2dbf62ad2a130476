/** Roles with what they give, and a role of one's own. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { call } from "../../api/client";
import type { Schema } from "../../api/client";
import { permissionsQuery, rolesQuery, useTenantAct } from "../../api/queries/access";
import type { Role } from "../../api/queries/access";
import { Button } from "../../components/Button";
import { DataTable } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Failed, Skeleton } from "../../components/PageState";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { FormDialog } from "./parts";

export function RolesPage() {
  const { tenant } = usePlace();
  const may = useMay();
  useCrumbs([{ label: "Roles" }]);
  const roles = useQuery(rolesQuery(tenant.id));
  const permissions = useQuery(permissionsQuery).data ?? [];
  const [shown, setShown] = useState<Role | null>(null);
  const [making, setMaking] = useState(false);
  const create = useTenantAct<Schema<"NewRole">>(["roles"], (body) => call("POST /api/v1/tenants/{tenant}/roles", { path: { tenant: tenant.id }, body }));
  const keys = (role: Role) => new Set(role.grants.flatMap((grant) => grant.permissions)).size;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Roles</h1>
        <span className="lead">what somebody may, where, and in which environments</span>
        <span className="grow" />
        <Button kind="pri" off={may("rbac:role:manage")} onClick={() => setMaking(true)}>
          New role
        </Button>
      </div>
      {roles.isPending ? <Skeleton /> : null}
      {roles.isError ? <Failed what="Roles were not read" error={roles.error} onRetry={() => void roles.refetch()} /> : null}
      {roles.data ? (
        <DataTable
          label="Roles"
          rows={roles.data}
          keyOf={(role) => role.name}
          columns={[
            {
              key: "name",
              head: "Role",
              width: "minmax(140px, 200px)",
              cell: (role) => (
                <button type="button" className="link b" onClick={() => setShown(role)}>
                  {role.name}
                </button>
              ),
            },
            { key: "about", head: "What it is for", width: "minmax(200px, 1fr)", cell: (role) => role.description },
            { key: "from", head: "From", width: "100px", cell: (role) => <span className="tag">{role.built_in ? "built in" : "yours"}</span> },
            { key: "keys", head: "Permissions", width: "100px", right: true, cell: (role) => <span className="num">{keys(role)}</span> },
          ]}
        />
      ) : null}
      {shown ? (
        <Dialog title={shown.name} className="wide" onClose={() => setShown(null)} foot={<Button onClick={() => setShown(null)}>Close</Button>}>
          <p className="sec">{shown.description}</p>
          {shown.grants.map((grant, index) => (
            <section key={index} className="section" aria-label={`Part ${index + 1}`}>
              <h3 className="b">{grant.environments ? `In ${(grant.environments as string[]).join(", ")}` : "In every environment"}</h3>
              <ul className="col" style={{ gap: 2, maxHeight: 300, overflow: "auto" }} tabIndex={0} aria-label="Permissions">
                {grant.permissions.map((key) => (
                  <li key={key} className="row">
                    <span className="mono" style={{ width: 260 }}>{key}</span>
                    <span className="mute trunc">{permissions.find((one) => one.key === key)?.description}</span>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </Dialog>
      ) : null}
      {making ? (
        <FormDialog
          title="New role"
          verb="Create"
          act={create}
          onClose={() => setMaking(false)}
          onDone={() => setMaking(false)}
          input={(values) => {
            const list = (text: string | undefined) => (text ?? "").split(/[\s,]+/).filter(Boolean);
            const environments = list(values["environments"]);
            return {
              name: values["name"] ?? "",
              description: values["description"] ?? "",
              grants: [{ permissions: list(values["permissions"]), ...(environments.length > 0 ? { environments } : {}) }],
            };
          }}
        >
          {(problem) => (
            <>
              <Field label="Name" name="name" required problem={problem("name")} />
              <Field label="What it is for" name="description" />
              <fieldset style={{ border: 0, padding: 0, margin: 0 }}>
                <legend className="label">Permissions</legend>
                <div style={{ maxHeight: 220, overflow: "auto" }} tabIndex={0} role="group" aria-label="Permissions">
                  {permissions.map((one) => (
                    <label key={one.key} className="tick">
                      <input type="checkbox" name="permissions" value={one.key} />
                      <span>
                        <span className="mono">{one.key}</span> <span className="mute">{one.description}</span>
                      </span>
                    </label>
                  ))}
                </div>
              </fieldset>
              <Field label="Only in environments" name="environments" placeholder="dev, stage" hint="Empty: in every environment." problem={problem("grants")} />
            </>
          )}
        </FormDialog>
      ) : null}
    </div>
  );
}

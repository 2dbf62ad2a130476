/** The people of a tenant; one of them with roles, sessions and the answer to "why can she?". */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import { call } from "../../api/client";
import type { Schema } from "../../api/client";
import { assignmentsQuery, rolesQuery, useTenantAct, usersQuery } from "../../api/queries/access";
import type { User } from "../../api/queries/access";
import { Button } from "../../components/Button";
import { CopyId } from "../../components/Copy";
import { DataTable } from "../../components/DataTable";
import { Field, SelectField } from "../../components/Field";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { NotFound } from "../SignedIn";
import { ExplainPanel } from "./ExplainPanel";
import { ConfirmDialog, FormDialog } from "./parts";

export function UsersPage() {
  const { tenant } = usePlace();
  const may = useMay();
  const say = useSay();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as { find?: string };
  useCrumbs([{ label: "Users" }]);
  const users = useQuery(usersQuery(tenant.id));
  const assignments = useQuery(assignmentsQuery(tenant.id)).data ?? [];
  const roles = useQuery(rolesQuery(tenant.id)).data ?? [];
  const [making, setMaking] = useState(false);
  const create = useTenantAct<{ body: Schema<"NewUser">; role: string }>(["users", "assignments"], async ({ body, role }) => {
    const user = await call("POST /api/v1/tenants/{tenant}/users", { path: { tenant: tenant.id }, body });
    if (role) {
      await call("POST /api/v1/tenants/{tenant}/role-assignments", { path: { tenant: tenant.id }, body: { role, user_id: user.id } });
    }
    return user;
  });
  const wanted = (search.find ?? "").toLowerCase();
  const people = (users.data ?? []).filter((user) => user.kind === "user");
  const shown = people.filter((user) => `${user.email} ${user.display_name}`.toLowerCase().includes(wanted));
  return (
    <div className="page">
      <div className="page-head">
        <h1>Users</h1>
        <span className="lead">of {tenant.name}</span>
        <span className="grow" />
        <Button kind="pri" off={may("users:account:create")} onClick={() => setMaking(true)}>
          New user
        </Button>
      </div>
      <div className="filters">
        <input
          className="input sm"
          type="search"
          aria-label="Filter users"
          placeholder="Filter by name or address"
          value={search.find ?? ""}
          onChange={(event) => void navigate({ to: "/users", search: { find: event.target.value || undefined } as never, replace: true })}
        />
      </div>
      {users.isPending ? <Skeleton /> : null}
      {users.isError ? <Failed what="Users were not read" error={users.error} onRetry={() => void users.refetch()} /> : null}
      {users.data && shown.length === 0 ? <Empty title="Nobody is called that" /> : null}
      {shown.length > 0 ? (
        <DataTable
          label="Users"
          rows={shown}
          keyOf={(user) => user.id}
          onOpen={(user) => void navigate({ to: `/users/${user.id}` })}
          columns={[
            {
              key: "name",
              head: "Name",
              width: "minmax(160px, 1fr)",
              cell: (user) => (
                <Link to={`/users/${user.id}`} className="link b">
                  {user.display_name || user.email}
                </Link>
              ),
            },
            { key: "email", head: "Address", width: "minmax(160px, 1fr)", cell: (user) => user.email },
            {
              key: "roles",
              head: "Roles",
              width: "minmax(120px, 220px)",
              cell: (user) => assignments.filter((one) => one.user_id === user.id).map((one) => one.role).join(", ") || <span className="mute">by group or none</span>,
            },
            {
              key: "state",
              head: "Account",
              width: "110px",
              cell: (user) => (
                <span className="row">
                  <StatusShape shape={user.disabled ? "person" : "ok"} />
                  {user.disabled ? "disabled" : "enabled"}
                </span>
              ),
            },
            { key: "login", head: "Last sign-in", width: "110px", right: true, cell: (user) => <Time at={user.last_login} /> },
          ]}
        />
      ) : null}
      {making ? (
        <FormDialog
          title="New user"
          verb="Create"
          act={create}
          onClose={() => setMaking(false)}
          onDone={() => {
            setMaking(false);
            say("The user is there.");
          }}
          input={(values) => ({
            body: { email: values["email"] ?? "", display_name: values["display_name"] ?? "", password: values["password"] ?? "" },
            role: values["role"] ?? "",
          })}
        >
          {(problem) => (
            <>
              <Field label="Name" name="display_name" required problem={problem("display_name")} />
              <Field label="Address" name="email" type="email" required problem={problem("email")} />
              <Field label="First password" name="password" type="password" autoComplete="new-password" required minLength={12} problem={problem("password")} />
              <SelectField label="Role" name="role" defaultValue="viewer">
                <option value="">none yet</option>
                {roles.map((role) => (
                  <option key={role.name}>{role.name}</option>
                ))}
              </SelectField>
            </>
          )}
        </FormDialog>
      ) : null}
    </div>
  );
}

export function UserPage() {
  const { user: id = "" } = useParams({ strict: false }) as { user?: string };
  const { tenant } = usePlace();
  const users = useQuery(usersQuery(tenant.id));
  const user = users.data?.find((one) => one.id === id);
  useCrumbs([{ label: "Users", to: "/users" }, { label: user?.display_name || user?.email || "User" }]);
  if (users.isPending) return <div className="page"><Skeleton /></div>;
  if (!user) return <NotFound />;
  return <UserView user={user} />;
}

function UserView({ user }: { user: User }) {
  const { tenant, me } = usePlace();
  const may = useMay();
  const say = useSay();
  const navigate = useNavigate();
  const [asked, setAsked] = useState<"role" | "delete" | null>(null);
  const assignments = (useQuery(assignmentsQuery(tenant.id)).data ?? []).filter((one) => one.user_id === user.id);
  const roles = useQuery(rolesQuery(tenant.id)).data ?? [];
  const path = { tenant: tenant.id, user: user.id };
  const change = useTenantAct<Schema<"PatchUser">>(["users"], (body) => call("PATCH /api/v1/tenants/{tenant}/users/{user}", { path, body }));
  const give = useTenantAct<Schema<"NewAssignment">>(["assignments"], (body) => call("POST /api/v1/tenants/{tenant}/role-assignments", { path: { tenant: tenant.id }, body }));
  const take = useTenantAct<string>(["assignments"], (assignment) => call("DELETE /api/v1/tenants/{tenant}/role-assignments/{assignment}", { path: { tenant: tenant.id, assignment } }));
  const end = useTenantAct<undefined>([], () => call("DELETE /api/v1/tenants/{tenant}/users/{user}/sessions", { path }));
  const remove = useTenantAct<undefined>(["users"], () => call("DELETE /api/v1/tenants/{tenant}/users/{user}", { path }));
  const bad = (error: Error) => say(error.message, true);
  const self = user.id === me.user.id ? "This is you." : null;
  return (
    <div className="page">
      <div className="page-head">
        <h1>{user.display_name || user.email}</h1>
        <CopyId text={user.id} label={user.email} />
        {user.disabled ? <span className="tag warn">disabled</span> : null}
        <span className="grow" />
        <Button off={may("users:session:revoke")} onClick={() => end.mutate(undefined, { onSuccess: () => say("Signed out everywhere within seconds."), onError: bad })}>
          Sign out everywhere
        </Button>
        <Button off={self ?? may("users:account:update")} onClick={() => change.mutate({ disabled: !user.disabled }, { onError: bad })}>
          {user.disabled ? "Enable" : "Disable"}
        </Button>
        <Button kind="danger" off={self ?? may("users:account:delete")} onClick={() => setAsked("delete")}>
          Delete…
        </Button>
      </div>
      <section className="section" aria-label="Roles">
        <div className="row">
          <h2 className="h2">Roles in {tenant.name}</h2>
          <span className="grow" />
          <Button size="sm" off={may("rbac:assignment:manage")} onClick={() => setAsked("role")}>
            Give a role…
          </Button>
        </div>
        {assignments.length === 0 ? (
          <p className="mute">None of their own here. Groups and tenants further up may give some: ask below.</p>
        ) : (
          <DataTable
            label="Roles"
            rows={assignments}
            keyOf={(one) => one.id}
            columns={[
              { key: "role", head: "Role", width: "minmax(140px, 1fr)", cell: (one) => <span className="b">{one.role}</span> },
              { key: "reach", head: "Reach", width: "140px", cell: (one) => one.reach },
              { key: "until", head: "Until", width: "120px", cell: (one) => (one.expires_at ? <Time at={one.expires_at} /> : "taken away") },
              {
                key: "take",
                head: "",
                width: "90px",
                right: true,
                cell: (one) => (
                  <Button size="sm" off={may("rbac:assignment:manage")} onClick={() => take.mutate(one.id, { onError: bad })}>
                    Take away
                  </Button>
                ),
              },
            ]}
          />
        )}
      </section>
      <ExplainPanel user={user.id} name={user.display_name || user.email} />
      {asked === "role" ? (
        <FormDialog
          title="Give a role"
          verb="Give"
          act={give}
          onClose={() => setAsked(null)}
          onDone={() => setAsked(null)}
          input={(values) => ({
            role: values["role"] ?? "",
            user_id: user.id,
            subtree: values["subtree"] === "on",
            ...(values["until"] ? { expires_at: new Date(values["until"]).toISOString() } : {}),
          })}
        >
          {(problem) => (
            <>
              <SelectField label="Role" name="role" problem={problem("role")}>
                {roles.map((role) => (
                  <option key={role.name}>{role.name}</option>
                ))}
              </SelectField>
              <Field label="Until" name="until" type="date" hint="Empty: until it is taken away." />
              <label className="tick">
                <input type="checkbox" name="subtree" />
                <span>In the tenants below as well</span>
              </label>
            </>
          )}
        </FormDialog>
      ) : null}
      {asked === "delete" ? (
        <ConfirmDialog
          title={`Delete ${user.email}`}
          word={user.email}
          verb="Delete the user"
          busy={remove.isPending}
          error={remove.error}
          onClose={() => setAsked(null)}
          onConfirm={() => remove.mutate(undefined, { onSuccess: () => void navigate({ to: "/users" }) })}
        >
          <p>Their sessions end and their roles go. The audit trail keeps what they did.</p>
        </ConfirmDialog>
      ) : null}
    </div>
  );
}

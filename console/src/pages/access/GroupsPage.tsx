/** Groups carry roles for their members. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { call } from "../../api/client";
import type { Schema } from "../../api/client";
import { assignmentsQuery, groupsQuery, membersQuery, useTenantAct, usersQuery } from "../../api/queries/access";
import type { Group } from "../../api/queries/access";
import { Button } from "../../components/Button";
import { DataTable } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { useSay } from "../../components/Toasts";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { FormDialog } from "./parts";

export function GroupsPage() {
  const { tenant } = usePlace();
  const may = useMay();
  useCrumbs([{ label: "Groups" }]);
  const groups = useQuery(groupsQuery(tenant.id));
  const assignments = useQuery(assignmentsQuery(tenant.id)).data ?? [];
  const [making, setMaking] = useState(false);
  const [shown, setShown] = useState<Group | null>(null);
  const create = useTenantAct<Schema<"NewGroup">>(["groups"], (body) => call("POST /api/v1/tenants/{tenant}/groups", { path: { tenant: tenant.id }, body }));
  return (
    <div className="page">
      <div className="page-head">
        <h1>Groups</h1>
        <span className="grow" />
        <Button kind="pri" off={may("users:group:manage")} onClick={() => setMaking(true)}>
          New group
        </Button>
      </div>
      {groups.isPending ? <Skeleton /> : null}
      {groups.isError ? <Failed what="Groups were not read" error={groups.error} onRetry={() => void groups.refetch()} /> : null}
      {groups.data?.length === 0 ? <Empty title="No groups yet">Give a role to a group, and its members have it.</Empty> : null}
      {groups.data && groups.data.length > 0 ? (
        <DataTable
          label="Groups"
          rows={groups.data}
          keyOf={(group) => group.id}
          columns={[
            {
              key: "name",
              head: "Group",
              width: "minmax(140px, 200px)",
              cell: (group) => (
                <button type="button" className="link b" onClick={() => setShown(group)}>
                  {group.name}
                </button>
              ),
            },
            { key: "about", head: "What it is", width: "minmax(160px, 1fr)", cell: (group) => group.description },
            { key: "roles", head: "Roles", width: "minmax(120px, 240px)", cell: (group) => assignments.filter((one) => one.group_id === group.id).map((one) => one.role).join(", ") },
            { key: "members", head: "Members", width: "90px", right: true, cell: (group) => <span className="num">{group.members}</span> },
          ]}
        />
      ) : null}
      {making ? (
        <FormDialog
          title="New group"
          verb="Create"
          act={create}
          onClose={() => setMaking(false)}
          onDone={() => setMaking(false)}
          input={(values) => ({ name: values["name"] ?? "", description: values["description"] ?? "" })}
        >
          {(problem) => (
            <>
              <Field label="Name" name="name" required problem={problem("name")} />
              <Field label="What it is" name="description" />
            </>
          )}
        </FormDialog>
      ) : null}
      {shown ? <MembersDialog group={shown} onClose={() => setShown(null)} /> : null}
    </div>
  );
}

function MembersDialog({ group, onClose }: { group: Group; onClose: () => void }) {
  const { tenant } = usePlace();
  const may = useMay();
  const say = useSay();
  const members = useQuery(membersQuery(tenant.id, group.id)).data ?? [];
  const users = useQuery(usersQuery(tenant.id)).data ?? [];
  const lists = ["groups", `members:${group.id}`];
  const path = (user: string) => ({ tenant: tenant.id, group: group.id, user });
  const add = useTenantAct<string>(lists, (user) => call("PUT /api/v1/tenants/{tenant}/groups/{group}/members/{user}", { path: path(user) }));
  const remove = useTenantAct<string>(lists, (user) => call("DELETE /api/v1/tenants/{tenant}/groups/{group}/members/{user}", { path: path(user) }));
  const bad = (error: Error) => say(error.message, true);
  const off = may("users:group:manage");
  const others = users.filter((user) => !members.some((member) => member.id === user.id));
  return (
    <Dialog title={`Members of ${group.name}`} onClose={onClose} foot={<Button onClick={onClose}>Close</Button>}>
      {members.length === 0 ? <p className="mute">Nobody yet.</p> : null}
      <ul className="col">
        {members.map((member) => (
          <li key={member.id} className="row">
            <span className="grow trunc">{member.display_name || member.email}</span>
            <Button size="sm" off={off} onClick={() => remove.mutate(member.id, { onError: bad })}>
              Remove
            </Button>
          </li>
        ))}
      </ul>
      <label className="field">
        <span className="label">Add somebody</span>
        <select className="input" value="" disabled={Boolean(off)} onChange={(event) => add.mutate(event.target.value, { onError: bad })}>
          <option value="">choose…</option>
          {others.map((user) => (
            <option key={user.id} value={user.id}>
              {user.email}
            </option>
          ))}
        </select>
      </label>
    </Dialog>
  );
}

/** Approvals that follow their events, and names for the ids in them. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";

import { EventFeed, tenantEvents } from "../../api/live/events";
import { groupsQuery, usersQuery } from "../../api/queries/access";
import { useMay, usePlace } from "../shell/context";
import type { Names } from "./chain";

export const APPROVAL_EVENTS = ["approval.required", "approval.changed", "approval.completed"];
/** What an approval that moves makes old. */
const OLD = ["approvals", "approval", "runs", "run"];

/** Reads again what changed, on every page: the frame counts what waits. Nothing for those who may not see approvals. */
export function useApprovalFeed(): void {
  const { tenant } = usePlace();
  const may = useMay();
  const client = useQueryClient();
  const on = may("approval:request:read") === null;
  useEffect(() => {
    if (!on) return;
    const feed = new EventFeed(tenantEvents(tenant.id, APPROVAL_EVENTS), () => {
      for (const name of OLD) void client.invalidateQueries({ queryKey: [name] });
    });
    feed.start();
    return () => feed.stop();
  }, [on, tenant.id, client]);
}

/** Names where one may see people; somebody who is not in the list is of a tenant above. */
export function useNames(): Names {
  const { me, tenant } = usePlace();
  const may = useMay();
  const enabled = may("users:read") === null;
  const users = useQuery({ ...usersQuery(tenant.id), enabled }).data;
  const groups = useQuery({ ...groupsQuery(tenant.id), enabled }).data;
  return useMemo(() => {
    const people = new Map((users ?? []).map((user) => [user.id, user.display_name || user.email]));
    const named = new Map((groups ?? []).map((group) => [group.id, group.name]));
    return {
      user: (id) => (id === me.user.id ? "you" : (people.get(id) ?? (enabled ? "somebody of a tenant above" : "a member of this tenant"))),
      group: (id) => named.get(id) ?? "a group",
    };
  }, [users, groups, enabled, me.user.id]);
}

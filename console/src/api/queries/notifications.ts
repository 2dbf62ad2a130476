/** What somebody is told in person. It is theirs wherever they look: it has no tenant in its key. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { call } from "../client";
import type { Schema } from "../client";

export type Notification = Schema<"Notification">;

export const NOTIFICATIONS = "notifications";
/** The first ones, and how many more each time. */
export const FIRST = 20;
/** More than this many unread ones are not counted. */
const COUNTED = 100;
/** Events tell sooner; this is for a network that lets none through. */
const AGAIN_MS = 30_000;

/** The newest `count`, and whether there are older ones. */
export function notificationsQuery(count: number) {
  return queryOptions({
    queryKey: [NOTIFICATIONS, "newest", count],
    queryFn: async ({ signal }) => {
      const items: Notification[] = [];
      let after: string | undefined;
      do {
        const page = await call("GET /api/v1/notifications", { query: { after, limit: Math.min(COUNTED, count - items.length) }, signal });
        items.push(...page.items);
        after = page.next ?? undefined;
      } while (after && items.length < count);
      return { items, more: Boolean(after) };
    },
  });
}

/** How many were not read; `more` where it is at least so many. */
export const unreadQuery = queryOptions({
  queryKey: [NOTIFICATIONS, "unread"],
  queryFn: async ({ signal }) => {
    const page = await call("GET /api/v1/notifications", { query: { unread: true, limit: COUNTED }, signal });
    return { count: page.items.length, more: Boolean(page.next) };
  },
  refetchInterval: AGAIN_MS,
});

export function useMarkRead() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (notification: string | "all"): Promise<unknown> =>
      notification === "all"
        ? call("POST /api/v1/notifications/read-all")
        : call("POST /api/v1/notifications/{notification}/read", { path: { notification } }),
    onSettled: () => client.invalidateQueries({ queryKey: [NOTIFICATIONS] }),
  });
}

/** What somebody is told in person. It is theirs wherever they look: it has no tenant in its key. */
import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

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

export type Preferences = Schema<"NotificationPreferences">;
export type Webhook = Schema<"Webhook">;
export type Delivery = Schema<"Delivery">;

const PREFERENCES = [NOTIFICATIONS, "preferences"];

export const preferencesQuery = queryOptions({
  queryKey: PREFERENCES,
  queryFn: ({ signal }) => call("GET /api/v1/notifications/preferences", { signal }),
});

/** What was chosen, as the page shows it until the server has answered. */
export function chosen(before: Preferences, { set = [], digest }: Schema<"SetPreferences">): Preferences {
  const kinds = before.kinds.map((one) => set.filter((choice) => choice.kind === one.kind).reduce((kept, choice) => ({ ...kept, [choice.channel]: choice.mode }), one));
  return { ...before, kinds, digest: digest ?? before.digest };
}

/** One after the other: what is chosen quickly goes on from what was chosen before it. */
export function useSetPreferences() {
  const client = useQueryClient();
  return useMutation({
    mutationKey: PREFERENCES,
    scope: { id: PREFERENCES.join() },
    mutationFn: (body: Schema<"SetPreferences">) => call("PATCH /api/v1/notifications/preferences", { body }),
    onMutate: (body) => {
      client.setQueryData<Preferences>(PREFERENCES, (before) => (before ? chosen(before, body) : before));
    },
    onSettled: () => (client.isMutating({ mutationKey: PREFERENCES }) === 1 ? client.invalidateQueries({ queryKey: PREFERENCES }) : undefined),
  });
}

export const WEBHOOKS = "webhooks";
export const DELIVERIES = "deliveries";

export const webhooksQuery = (tenant: string) =>
  queryOptions({
    queryKey: [WEBHOOKS, tenant],
    queryFn: async ({ signal }) => (await call("GET /api/v1/tenants/{tenant}/webhooks", { path: { tenant }, signal })).items,
  });

/** The newest first; `status` is one of them, or all. */
export const deliveriesQuery = (tenant: string, status: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [DELIVERIES, tenant, status ?? ""],
    queryFn: ({ signal, pageParam }) => call("GET /api/v1/tenants/{tenant}/deliveries", { path: { tenant }, query: { status, limit: COUNTED, after: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    refetchInterval: AGAIN_MS,
  });

export const deliveryQuery = (tenant: string, delivery: string) =>
  queryOptions({
    queryKey: [DELIVERIES, tenant, "one", delivery],
    queryFn: ({ signal }) => call("GET /api/v1/tenants/{tenant}/deliveries/{delivery}", { path: { tenant, delivery }, signal }),
  });

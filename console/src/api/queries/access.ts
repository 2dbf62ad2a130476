/** Tenants, people, roles, keys and the audit trail of one tenant. */
import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { call, download, read } from "../client";
import type { Schema } from "../client";

export type User = Schema<"User">;
export type Group = Schema<"Group">;
export type Role = Schema<"Role">;
export type Assignment = Schema<"RoleAssignment">;
export type ApiKey = Schema<"ApiKey">;
export type AuditEntry = Schema<"AuditEntry">;
export type Explanation = Schema<"Explanation">;

/** The most that one answer holds; what is longer is read in parts, so no list is cut off. */
const PART = 500;

interface Part<T> {
  items: T[];
  next?: string | null | undefined;
}

async function everything<T>(read: (query: { limit: number; after?: string | undefined }) => Promise<Part<T>>): Promise<T[]> {
  const items: T[] = [];
  let after: string | undefined;
  do {
    const part = await read({ limit: PART, after });
    items.push(...part.items);
    after = part.next ?? undefined;
  } while (after);
  return items;
}

/** One list of a tenant, under a key that carries the tenant. */
function list<T>(name: string, tenant: string, queryFn: (signal: AbortSignal) => Promise<T>) {
  return queryOptions({
    queryKey: [name, tenant],
    queryFn: ({ signal }) => queryFn(signal),
    enabled: tenant !== "",
  });
}

export const usersQuery = (tenant: string) =>
  list("users", tenant, (signal) =>
    everything((query) => call("GET /api/v1/tenants/{tenant}/users", { path: { tenant }, query, signal })),
  );

export const groupsQuery = (tenant: string) =>
  list("groups", tenant, (signal) =>
    everything((query) => call("GET /api/v1/tenants/{tenant}/groups", { path: { tenant }, query, signal })),
  );

export const membersQuery = (tenant: string, group: string) =>
  list(`members:${group}`, tenant, (signal) =>
    everything((query) => call("GET /api/v1/tenants/{tenant}/groups/{group}/members", { path: { tenant, group }, query, signal })),
  );

export const rolesQuery = (tenant: string) =>
  list("roles", tenant, (signal) =>
    everything((query) => call("GET /api/v1/tenants/{tenant}/roles", { path: { tenant }, query, signal })),
  );

export const assignmentsQuery = (tenant: string) =>
  list("assignments", tenant, (signal) =>
    everything((query) => call("GET /api/v1/tenants/{tenant}/role-assignments", { path: { tenant }, query, signal })),
  );

export const keysQuery = (tenant: string) =>
  list("keys", tenant, (signal) =>
    everything((query) => call("GET /api/v1/tenants/{tenant}/keys", { path: { tenant }, query, signal })),
  );

export const cloudAccountsQuery = (tenant: string) =>
  list("cloud-accounts", tenant, (signal) =>
    everything((query) => call("GET /api/v1/tenants/{tenant}/cloud-accounts", { path: { tenant }, query, signal })),
  );

export const deletedTenantsQuery = (tenant: string) =>
  list("deleted-tenants", tenant, (signal) =>
    everything((query) => call("GET /api/v1/tenants/{tenant}/deleted", { path: { tenant }, query, signal })),
  );

export const effectiveQuery = (tenant: string) =>
  list("effective", tenant, (signal) => call("GET /api/v1/tenants/{tenant}/effective", { path: { tenant }, signal }));

export const permissionsQuery = queryOptions({
  queryKey: ["permissions"],
  queryFn: ({ signal }) => everything((query) => call("GET /api/v1/permissions", { query, signal })),
  staleTime: Number.POSITIVE_INFINITY,
});

export interface AuditFilter {
  action?: string | undefined;
  resource_type?: string | undefined;
  user_id?: string | undefined;
  outcome?: string | undefined;
  trace_id?: string | undefined;
  from?: string | undefined;
  until?: string | undefined;
}

/** The newest first, and older ones on request. */
export const auditQuery = (tenant: string, filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ["audit", tenant, filter],
    queryFn: ({ signal, pageParam }) =>
      call("GET /api/v1/tenants/{tenant}/audit", {
        path: { tenant },
        query: { ...filter, newest_first: true, limit: 200, after: pageParam === undefined ? undefined : Number(pageParam) },
        signal,
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    enabled: tenant !== "",
  });

export const verdictQuery = (tenant: string) =>
  list("verdict", tenant, (signal) => call("GET /api/v1/tenants/{tenant}/audit/verify", { path: { tenant }, signal }));

export function exportAudit(tenant: string, filter: AuditFilter, format: "csv" | "json"): Promise<Blob> {
  return download("GET /api/v1/tenants/{tenant}/audit/export", { path: { tenant }, query: { ...filter, format } });
}

export function explain(tenant: string, body: Schema<"Explain">): Promise<Explanation> {
  return call("POST /api/v1/tenants/{tenant}/explain", { path: { tenant }, body });
}

export interface Health {
  status: string;
  version: string;
  checks: Record<string, string>;
}

export const healthQuery = queryOptions({
  queryKey: ["health"],
  queryFn: ({ signal }) => read<Health>("/health", signal),
  refetchInterval: 5_000,
  // A browser that believes to be offline is asked all the same: this is how the page knows.
  networkMode: "always",
});

/** An act on a tenant, after which the named lists are read again. */
export function useTenantAct<Input, Output = unknown>(lists: string[], act: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: () => Promise.all(lists.map((name) => client.invalidateQueries({ queryKey: [name] }))),
  });
}

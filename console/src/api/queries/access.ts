/** Tenants, people, roles, keys and the audit trail of one tenant. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { call, download, read } from "../client";
import type { Schema } from "../client";

export type User = Schema<"User">;
export type Group = Schema<"Group">;
export type Role = Schema<"Role">;
export type Assignment = Schema<"RoleAssignment">;
export type ApiKey = Schema<"ApiKey">;
export type AuditEntry = Schema<"AuditEntry">;
export type Explanation = Schema<"Explanation">;

const ALL = 500;

/** One list of a tenant, under a key that carries the tenant. */
function list<T>(name: string, tenant: string, queryFn: (signal: AbortSignal) => Promise<T>) {
  return queryOptions({
    queryKey: [name, tenant],
    queryFn: ({ signal }) => queryFn(signal),
    enabled: tenant !== "",
  });
}

export const usersQuery = (tenant: string) =>
  list("users", tenant, async (signal) => {
    const options = { path: { tenant }, query: { limit: ALL }, signal };
    return (await call("GET /api/v1/tenants/{tenant}/users", options)).items;
  });

export const groupsQuery = (tenant: string) =>
  list("groups", tenant, async (signal) => {
    const options = { path: { tenant }, query: { limit: ALL }, signal };
    return (await call("GET /api/v1/tenants/{tenant}/groups", options)).items;
  });

export const membersQuery = (tenant: string, group: string) =>
  list(`members:${group}`, tenant, async (signal) => {
    const options = { path: { tenant, group }, query: { limit: ALL }, signal };
    return (await call("GET /api/v1/tenants/{tenant}/groups/{group}/members", options)).items;
  });

export const rolesQuery = (tenant: string) =>
  list("roles", tenant, async (signal) => {
    const options = { path: { tenant }, query: { limit: ALL }, signal };
    return (await call("GET /api/v1/tenants/{tenant}/roles", options)).items;
  });

export const assignmentsQuery = (tenant: string) =>
  list("assignments", tenant, async (signal) => {
    const options = { path: { tenant }, query: { limit: ALL }, signal };
    return (await call("GET /api/v1/tenants/{tenant}/role-assignments", options)).items;
  });

export const keysQuery = (tenant: string) =>
  list("keys", tenant, async (signal) => {
    const options = { path: { tenant }, query: { limit: ALL }, signal };
    return (await call("GET /api/v1/tenants/{tenant}/keys", options)).items;
  });

export const effectiveQuery = (tenant: string) =>
  list("effective", tenant, (signal) => call("GET /api/v1/tenants/{tenant}/effective", { path: { tenant }, signal }));

export const permissionsQuery = queryOptions({
  queryKey: ["permissions"],
  queryFn: async ({ signal }) => (await call("GET /api/v1/permissions", { signal })).items,
  staleTime: Number.POSITIVE_INFINITY,
});

export interface AuditFilter {
  action?: string | undefined;
  resource_type?: string | undefined;
  user_id?: string | undefined;
  outcome?: string | undefined;
  from?: string | undefined;
  until?: string | undefined;
}

export const auditQuery = (tenant: string, filter: AuditFilter) =>
  queryOptions({
    queryKey: ["audit", tenant, filter],
    queryFn: ({ signal }) =>
      call("GET /api/v1/tenants/{tenant}/audit", {
        path: { tenant },
        query: { ...filter, newest_first: true, limit: 500 },
        signal,
      }),
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
});

/** An act on a tenant, after which the named lists are read again. */
export function useTenantAct<Input, Output = unknown>(lists: string[], act: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: () => Promise.all(lists.map((name) => client.invalidateQueries({ queryKey: [name] }))),
  });
}

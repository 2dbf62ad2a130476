/** Deployments, their environments and manifests, and the templates that they are made from. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { call } from "../client";
import type { Operation, Schema } from "../client";

export type Deployment = Schema<"Deployment">;
export type Environment = Schema<"Environment">;
export type Template = Schema<"Template">;
export type Stack = Schema<"Stack">;

type Tenant = string | undefined;

/** All of them, in parts: what was read so far is shown while the rest comes. */
export function deploymentsQuery(tenant: Tenant, archived = false) {
  const queryKey = ["deployments", tenant ?? "", archived];
  return queryOptions({
    queryKey,
    queryFn: async ({ client, signal }) => {
      const items: Deployment[] = [];
      const first = client.getQueryData(queryKey) === undefined;
      let after: string | undefined;
      do {
        const query = { tenant, archived: archived || undefined, after, limit: 500 };
        const page = await call("GET /api/v1/deployments", { query, signal });
        items.push(...page.items);
        after = page.next ?? undefined;
        if (after && first) client.setQueryData(queryKey, [...items]);
      } while (after);
      return items;
    },
  });
}

/** Whether there is any deployment at all. */
export function anyDeploymentQuery(tenant: Tenant) {
  return queryOptions({
    queryKey: ["deployments", tenant ?? "", "any"],
    queryFn: async ({ signal }) => (await call("GET /api/v1/deployments", { query: { tenant, limit: 1 }, signal })).items.length > 0,
  });
}

export function deploymentQuery(tenant: Tenant, deployment: string) {
  return queryOptions({
    queryKey: ["deployment", tenant ?? "", deployment],
    queryFn: ({ signal }) =>
      call("GET /api/v1/deployments/{deployment}", { path: { deployment }, query: { tenant }, signal }),
  });
}

export function environmentsQuery(tenant: Tenant, deployment: string) {
  return queryOptions({
    queryKey: ["environments", tenant ?? "", deployment],
    queryFn: async ({ signal }) => {
      const options = { path: { deployment }, query: { tenant }, signal };
      return (await call("GET /api/v1/deployments/{deployment}/status", options)).items;
    },
    refetchInterval: 5_000,
  });
}

/** Where the units of every environment stand, real or rehearsed. */
export function standingQuery(tenant: Tenant, deployment: string, rehearsal: boolean) {
  return queryOptions({
    queryKey: ["standing", tenant ?? "", deployment, rehearsal],
    queryFn: async ({ signal }) => {
      const options = { path: { deployment }, query: { tenant, rehearsal }, signal };
      return (await call("GET /api/v1/deployments/{deployment}/status", options)).items;
    },
    refetchInterval: 5_000,
  });
}

/** What has to be true of each environment before the next one follows. */
export function gatesQuery(tenant: Tenant, deployment: string, rehearsal: boolean) {
  return queryOptions({
    queryKey: ["gates", tenant ?? "", deployment, rehearsal],
    queryFn: ({ signal }) => call("GET /api/v1/deployments/{deployment}/gates", { path: { deployment }, query: { tenant, rehearsal }, signal }),
  });
}

/** Somebody says that an item of a gate is done. */
export function useSignGate(tenant: Tenant, deployment: string, environment: string, rehearsal: boolean) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ item, note }: { item: string; note: string }) =>
      call("PUT /api/v1/deployments/{deployment}/environments/{environment}/gate/{item}", { path: { deployment, environment, item }, query: { tenant }, body: { note, rehearsal } }),
    onSettled: () => client.invalidateQueries({ queryKey: ["gates"] }),
  });
}

export function manifestQuery(tenant: Tenant, deployment: string) {
  return queryOptions({
    queryKey: ["manifest", tenant ?? "", deployment],
    queryFn: async ({ signal }) => {
      const options = { path: { deployment }, query: { tenant }, signal };
      return (await call("GET /api/v1/deployments/{deployment}/manifest", options)).manifest;
    },
  });
}

export function templatesQuery(tenant: Tenant) {
  return queryOptions({
    queryKey: ["templates", tenant ?? ""],
    queryFn: async ({ signal }) => (await call("GET /api/v1/templates", { query: { tenant, limit: 500 }, signal })).items,
    staleTime: 60_000,
  });
}

export function templateQuery(tenant: Tenant, template: string) {
  return queryOptions({
    queryKey: ["template", tenant ?? "", template],
    queryFn: ({ signal }) => call("GET /api/v1/templates/{template}", { path: { template }, query: { tenant }, signal }),
    staleTime: 60_000,
    enabled: template !== "",
  });
}

export function stacksQuery(tenant: Tenant) {
  return queryOptions({
    queryKey: ["stacks", tenant ?? ""],
    queryFn: async ({ signal }) => (await call("GET /api/v1/stacks", { query: { tenant, limit: 500 }, signal })).items,
    staleTime: 60_000,
  });
}

export function useCreateDeployment(tenant: Tenant) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ body, key }: { body: Schema<"NewDeployment">; key: string }) =>
      call("POST /api/v1/deployments", { query: { tenant }, body, headers: { "idempotency-key": key } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["deployments"] }),
  });
}

export function useSaveManifest(tenant: Tenant, deployment: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ manifest, revision }: { manifest: string; revision: number }) =>
      call("PUT /api/v1/deployments/{deployment}", {
        path: { deployment },
        query: { tenant },
        body: { manifest },
        headers: { "if-match": `"${revision}"` },
      }),
    onSuccess: () => client.invalidateQueries({ predicate: (query) => query.queryKey.includes(deployment) }),
  });
}

export function useSwitchEnvironment(tenant: Tenant, deployment: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ environment, on }: { environment: string; on: boolean }) => {
      const act = on ? "enable" : "disable";
      const operation =
        `POST /api/v1/deployments/{deployment}/environments/{environment}/${act}` as const satisfies Operation;
      return call(operation, { path: { deployment, environment }, query: { tenant } });
    },
    onSettled: () => client.invalidateQueries({ predicate: (query) => query.queryKey.includes(deployment) }),
  });
}

export function useRemoveDeployment(tenant: Tenant) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (deployment: string) =>
      call("DELETE /api/v1/deployments/{deployment}", { path: { deployment }, query: { tenant } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["deployments"] }),
  });
}

/** What was deployed: resources, outputs and whole states of an environment. No secret is in any of it. */
import { queryOptions } from "@tanstack/react-query";

import { call } from "../client";
import type { Schema } from "../client";

export type UnitState = Schema<"UnitStateView">;
export type StateResource = Schema<"ResourceView">;

export interface StatePlace {
  deployment: string;
  environment: string;
  rehearsal: boolean;
}

export function stateQuery(tenant: string | undefined, { deployment, environment, rehearsal }: StatePlace) {
  return queryOptions({
    queryKey: ["state", tenant ?? "", deployment, environment, rehearsal],
    queryFn: async ({ signal }) => {
      const query = { tenant, environment, rehearsal };
      return (await call("GET /api/v1/deployments/{deployment}/state", { path: { deployment }, query, signal })).units;
    },
  });
}

export function outputsQuery(tenant: string | undefined, { deployment, environment, rehearsal }: StatePlace) {
  return queryOptions({
    queryKey: ["outputs", tenant ?? "", deployment, environment, rehearsal],
    queryFn: async ({ signal }) => {
      const query = { tenant, environment, rehearsal };
      const found = await call("GET /api/v1/deployments/{deployment}/outputs", { path: { deployment }, query, signal });
      return found.units as Record<string, Record<string, unknown>>;
    },
  });
}

/** The whole state in the official format, secrets still encrypted. */
export function exportState(tenant: string | undefined, { deployment, environment, rehearsal }: StatePlace) {
  const body = { environment, rehearsal };
  return call("POST /api/v1/deployments/{deployment}/state/export", { path: { deployment }, query: { tenant }, body });
}

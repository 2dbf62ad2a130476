/** What was deployed: resources, outputs and whole states of an environment. No secret is in any of it. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

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

export type StateVersion = Schema<"UnitStateVersion">;
export type StateDifference = Schema<"StateDifference">;
export type ResourceDifference = Schema<"ResourceDifference">;
export type UnitHealth = Schema<"UnitHealth">;
export type JournalAct = Schema<"JournalAct">;
export type RepairAct = Schema<"RepairUnit">["act"];

const unitKey = (what: string, tenant: string | undefined, place: StatePlace, unit: string) => [what, tenant ?? "", place.deployment, place.environment, place.rehearsal, unit];

export function historyQuery(tenant: string | undefined, place: StatePlace, unit: string) {
  const { deployment, environment, rehearsal } = place;
  return queryOptions({
    queryKey: unitKey("unit-history", tenant, place, unit),
    queryFn: async ({ signal }) =>
      (await call("GET /api/v1/deployments/{deployment}/units/{unit}/history", { path: { deployment, unit }, query: { tenant, environment, rehearsal }, signal })).versions,
  });
}

/** Between two versions; 0 is nothing at all, and without a number the state as it is now. */
export function differenceQuery(tenant: string | undefined, place: StatePlace, unit: string, from: number | undefined, to: number | undefined) {
  const { deployment, environment, rehearsal } = place;
  return queryOptions({
    queryKey: [...unitKey("unit-difference", tenant, place, unit), from, to],
    queryFn: ({ signal }) =>
      call("GET /api/v1/deployments/{deployment}/units/{unit}/difference", { path: { deployment, unit }, query: { tenant, environment, rehearsal, from, to }, signal }),
  });
}

export function unitHealthQuery(tenant: string | undefined, place: StatePlace, unit: string) {
  const { deployment, environment, rehearsal } = place;
  return queryOptions({
    queryKey: unitKey("unit-health", tenant, place, unit),
    queryFn: ({ signal }) => call("GET /api/v1/deployments/{deployment}/units/{unit}/health", { path: { deployment, unit }, query: { tenant, environment, rehearsal }, signal }),
  });
}

export interface RepairStep {
  act: RepairAct;
  urn?: string;
  dependents?: boolean;
  dry_run?: boolean;
}

/** One step of a repair, on the very state that was looked at. */
export function useRepair(tenant: string | undefined, place: StatePlace, unit: string) {
  const client = useQueryClient();
  const { deployment, environment, rehearsal } = place;
  return useMutation({
    mutationFn: ({ version, ...step }: RepairStep & { version: string }) =>
      call("POST /api/v1/deployments/{deployment}/units/{unit}/repair", { path: { deployment, unit }, query: { tenant }, body: { environment, rehearsal, version, ...step } }),
    onSuccess: (_, step) => (step.dry_run ? undefined : client.invalidateQueries({ predicate: (query) => query.queryKey.includes(deployment) })),
  });
}

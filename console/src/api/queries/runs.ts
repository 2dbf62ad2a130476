/** Runs: lists, one run, and the acts on it. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { call, read } from "../client";
import type { Operation, Schema } from "../client";
import type { LogLine, LogPage, NumberedEvent, UnitDetail } from "../live/types";

export type Run = Schema<"Run">;

export interface RunFilter {
  deployment?: string | undefined;
  environment?: string | undefined;
  action?: string | undefined;
  status?: string | undefined;
}

const LIST = 200;

/** The newest, and whether there are older ones. */
export function runsQuery(tenant: string | undefined, filter: RunFilter = {}, count = LIST) {
  return queryOptions({
    queryKey: ["runs", tenant ?? "", filter, count],
    queryFn: async ({ signal }) => {
      const items: Run[] = [];
      let after: string | undefined;
      do {
        const page = await call("GET /api/v1/runs", { query: { tenant, ...filter, after, limit: LIST }, signal });
        items.push(...page.items);
        after = page.next ?? undefined;
      } while (after && items.length < count);
      return { items, more: Boolean(after) };
    },
    refetchInterval: (query) => (query.state.data?.items.some((run) => run.status !== "ended") ? 3_000 : 15_000),
  });
}

export function runQuery(tenant: string | undefined, run: string) {
  return queryOptions({
    queryKey: ["run", tenant ?? "", run],
    queryFn: ({ signal }) => call("GET /api/v1/runs/{run}", { path: { run }, query: { tenant }, signal }),
  });
}

export type RunAct = "cancel" | "pause" | "resume";

export function useRunAct(tenant: string | undefined, run: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (act: RunAct) => {
      const operation = `POST /api/v1/runs/{run}/${act}` as const satisfies Operation;
      return call(operation, { path: { run }, query: { tenant } });
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["runs"] }),
  });
}

export type StartAct = "deploy" | "destroy" | "preview" | "refresh" | "rollback";

export interface Start {
  act: StartAct;
  deployment: string;
  body: Schema<"StartRun">;
}

export function useStart(tenant: string | undefined) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ act, deployment, body }: Start) => {
      const operation = `POST /api/v1/deployments/{deployment}/${act}` as const satisfies Operation;
      return call(operation, { path: { deployment }, query: { tenant }, body });
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["runs"] }),
  });
}

function tail(tenant: string | undefined, query: Record<string, string | number | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ tenant, ...query })) {
    if (value !== undefined) search.set(name, String(value));
  }
  return search.toString();
}

export function readUnit(tenant: string | undefined, run: string, unit: string, after: number): Promise<UnitDetail> {
  return read(`/api/v1/runs/${run}/units/${encodeURIComponent(unit)}?${tail(tenant, { after, limit: 1000 })}`);
}

export function readLog(
  tenant: string | undefined,
  run: string,
  query: { unit?: string; before?: number; after?: number; limit?: number },
): Promise<LogPage> {
  return read(`/api/v1/runs/${run}/log?${tail(tenant, query)}`);
}

/** Every line of a run's log, a page at a time. */
export async function readWholeLog(tenant: string | undefined, run: string): Promise<LogLine[]> {
  const all: LogLine[] = [];
  for (;;) {
    const page = await readLog(tenant, run, { after: all.at(-1)?.seq ?? 0, limit: 2000 });
    all.push(...page.lines);
    if (!page.more || page.lines.length === 0) return all;
  }
}

/** Every event of a run that is over, for its replay. */
export async function readAllEvents(tenant: string | undefined, run: string): Promise<NumberedEvent[]> {
  const all: NumberedEvent[] = [];
  for (;;) {
    const after = all.at(-1)?.seq ?? 0;
    const page = await read<{ items: NumberedEvent[]; complete: boolean }>(
      `/api/v1/runs/${run}/events?${tail(tenant, { after, limit: 1000 })}`,
    );
    all.push(...page.items);
    if (page.complete || page.items.length === 0) return all;
  }
}

/** What to know before one decides on a plan, who has looked at what, and what one has begun to write. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { call } from "../client";
import type { Schema } from "../client";

export type PlanReview = Schema<"PlanReview">;
export type PlanRisk = Schema<"PlanRisk">;
export type SealItem = Schema<"SealItem">;
export type ReviewMark = Schema<"ReviewMark">;
export type DraftView = Schema<"DraftView">;
export type SystemView = Schema<"SystemView">;

type Tenant = string | undefined;

/** How often it is looked at again whether something moved. */
const AGAIN_MS = 10_000;

export function reviewQuery(tenant: Tenant, run: string, seq: number) {
  return queryOptions({
    // What is planned meanwhile is part of it.
    queryKey: ["review", tenant ?? "", run, seq],
    queryFn: ({ signal }) => call("GET /api/v1/runs/{run}/review", { path: { run }, query: { tenant }, signal }),
    refetchInterval: AGAIN_MS,
    placeholderData: (before) => before,
  });
}

export function marksQuery(tenant: Tenant, run: string) {
  return queryOptions({
    queryKey: ["marks", tenant ?? "", run],
    queryFn: async ({ signal }) => {
      const items: ReviewMark[] = [];
      let after: string | undefined;
      do {
        const query = { tenant, after, limit: 500 };
        const page = await call("GET /api/v1/runs/{run}/marks", { path: { run }, query, signal });
        items.push(...page.items);
        after = page.next ?? undefined;
      } while (after);
      return items;
    },
    refetchInterval: AGAIN_MS,
  });
}

interface Mark {
  item: string;
  digest: string;
  on: boolean;
}

/** Shown at once, and taken back when the server refuses it. */
export function useSetMark(tenant: Tenant, run: string, person: string) {
  const client = useQueryClient();
  const key = marksQuery(tenant, run).queryKey;
  return useMutation({
    mutationFn: ({ item, digest, on }: Mark): Promise<unknown> =>
      on
        ? call("PUT /api/v1/runs/{run}/marks/{item}", { path: { run, item }, query: { tenant }, body: { digest } })
        : call("DELETE /api/v1/runs/{run}/marks/{item}", { path: { run, item }, query: { tenant } }),
    onMutate: ({ item, digest, on }) => {
      const before = client.getQueryData(key) ?? [];
      const others = before.filter((mark) => mark.item !== item || mark.person !== person);
      client.setQueryData(key, on ? [...others, { item, digest, person, at: new Date().toISOString() }] : others);
    },
    onSettled: () => client.invalidateQueries({ queryKey: key }),
  });
}

export function draftsQuery(tenant: Tenant) {
  return queryOptions({
    queryKey: ["drafts", tenant ?? ""],
    queryFn: async ({ signal }) => (await call("GET /api/v1/drafts", { query: { tenant }, signal })).items,
    staleTime: Infinity,
  });
}

export function putDraft(tenant: Tenant, draft: string, kind: string, content: unknown): Promise<DraftView> {
  return call("PUT /api/v1/drafts/{draft}", { path: { draft }, query: { tenant }, body: { kind, content } });
}

export function deleteDraft(tenant: Tenant, draft: string): Promise<unknown> {
  return call("DELETE /api/v1/drafts/{draft}", { path: { draft }, query: { tenant } });
}

export const systemQuery = queryOptions({
  queryKey: ["system"],
  queryFn: ({ signal }) => call("GET /api/v1/system", { signal }),
  refetchInterval: 5_000,
});

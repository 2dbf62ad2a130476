/** Configuration items, what is around them and what happened to them; classes, compartments and imports. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";

import { call } from "../client";
import type { Schema } from "../client";

export type Item = Schema<"ConfigurationItem">;
export type ItemRelationship = Schema<"ItemRelationship">;
export type ItemGraph = Schema<"ItemGraph">;
export type HistoryEntry = Schema<"ItemHistoryEntry">;
export type Compartment = Schema<"ItemCompartment">;
export type ItemClass = Schema<"ItemClass">;
export type ImportJob = Schema<"ImportJob">;
export type Hit = Schema<"CmdbHit">;

/** The lists that a change of items makes old. */
export const CMDB = "cmdb";
const PART = 100;
const WHOLE_PART = 500;

type Tenant = string | undefined;

export interface ItemFilter {
  text?: string | undefined;
  class?: string | undefined;
  status?: string | undefined;
  compartment?: string | undefined;
  deployment?: string | undefined;
  environment?: string | undefined;
  unit?: string | undefined;
  source?: string | undefined;
  attribute?: string | undefined;
  rehearsal?: boolean | undefined;
}

export const itemsQuery = (tenant: Tenant, filter: ItemFilter) =>
  infiniteQueryOptions({
    queryKey: [CMDB, "items", tenant ?? "", filter],
    queryFn: ({ signal, pageParam }) => call("GET /api/v1/cmdb/items", { query: { tenant, ...filter, limit: PART, after: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
  });

export const itemQuery = (tenant: Tenant, item: string) =>
  queryOptions({
    queryKey: [CMDB, "item", tenant ?? "", item],
    queryFn: ({ signal }) => call("GET /api/v1/cmdb/items/{ci}", { path: { ci: item }, query: { tenant }, signal }),
  });

export const itemGraphQuery = (tenant: Tenant, item: string, depth: number, items: number) =>
  queryOptions({
    queryKey: [CMDB, "graph", tenant ?? "", item, depth, items],
    queryFn: ({ signal }) => call("GET /api/v1/cmdb/items/{ci}/graph", { path: { ci: item }, query: { tenant, depth, items }, signal }),
    placeholderData: keepPreviousData,
  });

export const itemHistoryQuery = (tenant: Tenant, item: string) =>
  infiniteQueryOptions({
    queryKey: [CMDB, "history", tenant ?? "", item],
    queryFn: ({ signal, pageParam }) =>
      call("GET /api/v1/cmdb/items/{ci}/history", { path: { ci: item }, query: { tenant, limit: PART, after: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });

/** Every class; there are as many as types in use. */
export const classesQuery = (tenant: Tenant) =>
  queryOptions({
    queryKey: [CMDB, "classes", tenant ?? ""],
    queryFn: ({ signal }) => whole((query) => call("GET /api/v1/cmdb/classes", { query: { tenant, ...query }, signal })),
  });

export const compartmentsQuery = (tenant: Tenant) =>
  queryOptions({
    queryKey: [CMDB, "compartments", tenant ?? ""],
    queryFn: ({ signal }) => whole((query) => call("GET /api/v1/cmdb/compartments", { query: { tenant, ...query }, signal })),
  });

export const importsQuery = (tenant: Tenant) =>
  infiniteQueryOptions({
    queryKey: [CMDB, "imports", tenant ?? ""],
    queryFn: ({ signal, pageParam }) => call("GET /api/v1/cmdb/imports", { query: { tenant, limit: PART, after: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });

const HITS = 20;

/** The first that are found; asked by the palette while somebody types. */
export const hitsQuery = (tenant: Tenant, text: string) =>
  queryOptions({
    queryKey: [CMDB, "hits", tenant ?? "", text],
    queryFn: async ({ signal }) => (await call("GET /api/v1/cmdb/search", { query: { tenant, query: text, limit: HITS }, signal })).items,
    enabled: text.length >= 2,
    placeholderData: keepPreviousData,
  });

async function whole<T>(read: (query: { limit: number; after?: string | undefined }) => Promise<{ items: T[]; next?: string | null | undefined }>): Promise<T[]> {
  const items: T[] = [];
  let after: string | undefined;
  do {
    const part = await read({ limit: WHOLE_PART, after });
    items.push(...part.items);
    after = part.next ?? undefined;
  } while (after);
  return items;
}

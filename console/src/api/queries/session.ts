/** Who is signed in, where, and what they may. */
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { call, rememberCsrf } from "../client";
import type { Schema } from "../client";

export type Me = Schema<"Me">;
export type Tenant = Schema<"Tenant">;

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => call("GET /api/v1/auth/me", { signal }),
  staleTime: 30_000,
  // A session that was ended elsewhere is over here too, within five seconds, also where nobody touches anything.
  refetchInterval: 4_000,
});

export const setupQuery = queryOptions({
  queryKey: ["setup"],
  queryFn: ({ signal }) => call("GET /api/v1/setup/status", { signal }),
});

/** Every tenant that one sees: one's own and those below it. */
export const tenantsQuery = queryOptions({
  queryKey: ["tenants"],
  queryFn: async ({ signal }) => {
    const items: Tenant[] = [];
    let after: string | undefined;
    do {
      const page = await call("GET /api/v1/tenants", { query: { after, limit: 500 }, signal });
      items.push(...page.items);
      after = page.next ?? undefined;
    } while (after);
    return items;
  },
  staleTime: 30_000,
});

export interface Credentials {
  tenant: string;
  email: string;
  password: string;
}

export async function signIn(credentials: Credentials): Promise<void> {
  const signedIn = await call("POST /api/v1/auth/login", { body: { ...credentials, cookies: true } });
  rememberCsrf(signedIn.csrf_token);
}

export async function signOut(): Promise<void> {
  try {
    await call("POST /api/v1/auth/logout");
  } finally {
    rememberCsrf(null);
  }
}

export function completeSetup(body: Schema<"CompleteSetup">) {
  return call("POST /api/v1/setup/complete", { body });
}

export const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: async ({ signal }) => (await call("GET /api/v1/auth/sessions", { query: { limit: 100 }, signal })).items,
});

export function useEndSession() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (session: string | "others"): Promise<unknown> =>
      session === "others"
        ? call("DELETE /api/v1/auth/sessions")
        : call("DELETE /api/v1/auth/sessions/{session}", { path: { session } }),
    onSettled: () => client.invalidateQueries({ queryKey: ["sessions"] }),
  });
}

export function useChangePassword() {
  return useMutation({
    mutationFn: (body: Schema<"ChangePassword">) => call("POST /api/v1/auth/password", { body }),
  });
}

export function useMe(): Me | undefined {
  return useQuery(meQuery).data;
}

/** What becomes of a session that is over. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { ApiError, call, onSignedOut, rememberCsrf, renew } from "./client";

describe("a session that is over", () => {
  const kept = new Map<string, string>();
  const asked: string[] = [];
  let told = 0;
  let forget: () => void;

  beforeEach(() => {
    kept.clear();
    asked.length = 0;
    told = 0;
    vi.stubGlobal("localStorage", {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
      removeItem: (key: string) => void kept.delete(key),
    });
    vi.stubGlobal("navigator", {});
    vi.stubGlobal("fetch", (url: string) => {
      asked.push(url);
      return Promise.resolve(new Response("{}", { status: 401 }));
    });
    rememberCsrf("code");
    forget = onSignedOut(() => {
      told += 1;
    });
  });

  afterEach(() => {
    forget();
    vi.unstubAllGlobals();
  });

  it("is tried to be renewed once, then told", async () => {
    await expect(call("GET /api/v1/auth/me")).rejects.toBeInstanceOf(ApiError);
    expect(asked).toEqual(["/api/v1/auth/me", "/api/v1/auth/refresh"]);
    expect(told).toBe(1);
  });

  it("is told as well where a socket or another tab found out first", async () => {
    expect(await renew()).toBe(false);
    await expect(call("GET /api/v1/auth/me")).rejects.toBeInstanceOf(ApiError);
    expect(asked).toEqual(["/api/v1/auth/refresh", "/api/v1/auth/me"]);
    expect(told).toBe(1);
  });

  it("is not what a wrong password is", async () => {
    const body = { tenant: "", email: "ada@example.org", password: "wrong" };
    await expect(call("POST /api/v1/auth/login", { body })).rejects.toBeInstanceOf(ApiError);
    expect(told).toBe(0);
  });
});

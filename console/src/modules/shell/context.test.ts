import { describe, expect, it } from "vitest";

import type { Tenant } from "../../api/queries/session";
import { tenantOf } from "./context";

const tenant = (id: string, slug: string) => ({ id, slug, name: slug }) as Tenant;
const OWN = tenant("1", "");
const ALL = [OWN, tenant("2", "aurora")];

describe("the tenant of an address", () => {
  it("is one's own where it names none, and the one that it names by slug or id", () => {
    expect(tenantOf(undefined, OWN, ALL)).toBe(OWN);
    expect(tenantOf("aurora", OWN, ALL)?.id).toBe("2");
    expect(tenantOf("2", OWN, ALL)?.id).toBe("2");
    expect(tenantOf("1", OWN, [])?.id).toBe("1");
  });

  it("is never another one than it names", () => {
    expect(tenantOf("borealis", OWN, ALL)).toBe(null);
    // Before the list is read.
    expect(tenantOf("aurora", OWN, [])).toBe(null);
  });
});

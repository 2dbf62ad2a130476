/** Marks hold for what was looked at, and for nothing else. */
import { describe, expect, it } from "vitest";

import type { ResourceRow } from "../../api/live/types";
import type { PlanRisk } from "../../api/queries/reviews";
import { digestOf, lookOf, unitDigest } from "./risks";

function row(name: string, value: string): ResourceRow {
  return { urn: `urn:${name}`, name, type: "t", op: "update", status: "planned", properties: [{ path: "size", old: "1", new: value }] };
}

describe("what was looked at", () => {
  it("is the same whatever order programs ask in", () => {
    expect(unitDigest([row("a", "2"), row("b", "3")])).toBe(unitDigest([row("b", "3"), row("a", "2")]));
  });

  it("is another when a value, a resource or an operation is another", () => {
    const base = unitDigest([row("a", "2")]);
    expect(unitDigest([row("a", "3")])).not.toBe(base);
    expect(unitDigest([row("a", "2"), row("b", "2")])).not.toBe(base);
    expect(unitDigest([{ ...row("a", "2"), op: "replace" }])).not.toBe(base);
  });

  it("does not run parts into each other", () => {
    expect(digestOf(["ab", "c"])).not.toBe(digestOf(["a", "bc"]));
  });
});

describe("a risk", () => {
  it("of a kind that this console does not know is shown all the same", () => {
    const risk = { key: "k", kind: "cost_jump", unit: "u", title: "t", about: "", reversible: true, count: 1 } as PlanRisk;
    expect(lookOf(risk)).toEqual({ op: "update", word: "cost jump", tone: "warn" });
  });
});

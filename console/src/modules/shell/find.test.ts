/** Searching in the palette. */
import { describe, expect, it } from "vitest";

import { narrow, pasted, recentIds, remember } from "./find";

const all = [
  { id: "/runs", group: "Pages", label: "Runs" },
  { id: "D1SHOP", group: "Deployments", label: "D1SHOP", about: "Aurora / storefront" },
  { id: ">new", group: "Commands", label: "New deployment…" },
  { id: "u1", group: "People", label: "Mira Okafor", about: "mira@example.org" },
  { id: "?keys", group: "Help", label: "Keys of this page" },
];
const labels = (text: string) => narrow(all, text).map((one) => one.label);

describe("the palette", () => {
  it("finds words in any order, and a first letter narrows down", () => {
    expect(labels("storefront aurora")).toEqual(["D1SHOP"]);
    expect(labels(">")).toEqual(["New deployment…"]);
    expect(labels("@mira")).toEqual(["Mira Okafor"]);
    expect(labels("#run")).toEqual([]);
    expect(labels("/run")).toEqual(["Runs"]);
    expect(labels("?")).toEqual(["Keys of this page"]);
  });

  it("knows what was pasted", () => {
    expect(pasted(" 2B8A0A6B-d62b-41fc-8a98-c5ce460aaebb ")).toEqual({ kind: "run", id: "2b8a0a6b-d62b-41fc-8a98-c5ce460aaebb" });
    expect(pasted("0af7651916cd43dd8448eb211c80319c")?.kind).toBe("trace");
    expect(pasted("D1DEMO-services-eks-dev")).toEqual({ kind: "unit", deployment: "D1DEMO", unit: "services-eks", environment: "dev" });
    expect(pasted("urn:pulumi:D1DEMO-network-dev::network::aws:ec2/vpc:Vpc::main")).toMatchObject({ kind: "urn", unit: "network" });
    expect(pasted("urn:pulumi:dev::network::aws:ec2/vpc:Vpc::main")).toBeNull();
    expect(pasted("new deployment")).toBeNull();
  });

  it("remembers the last ten, each once", () => {
    const kept = new Map<string, string>();
    const shelf = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) };
    for (let i = 0; i < 14; i += 1) remember(shelf, `r${i % 12}`);
    expect(recentIds(shelf)).toHaveLength(10);
    expect(recentIds(shelf)[0]).toBe("r1");
    expect(new Set(recentIds(shelf)).size).toBe(10);
  });
});

/** What of an output is shown. */
import { describe, expect, it } from "vitest";

import { outputRows } from "./outputs";

describe("outputs", () => {
  it("are sorted, and a secret has a word in the place of its value", () => {
    const rows = outputRows({ b: { url: "https://x", list: [1, 2] }, a: { password: { secret: true }, vpc: { kind: "resource", urn: "urn:1" }, code: { kind: "asset" } } });
    expect(rows.map((row) => [row.unit, row.name, row.kind, row.text])).toEqual([
      ["a", "code", "file", "a file"],
      ["a", "password", "secret", "secret"],
      ["a", "vpc", "resource", "urn:1"],
      ["b", "list", "value", "[1,2]"],
      ["b", "url", "value", "https://x"],
    ]);
  });
});

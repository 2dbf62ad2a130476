/** The width of tables. */
import { describe, expect, it } from "vitest";

import { leastWidth } from "./DataTable";

describe("a table", () => {
  it("is as wide as the least of its columns together, and scrolls below that", () => {
    expect(leastWidth(["minmax(120px, 1fr)", "90px"])).toBe(120 + 90 + 16 + 28);
    expect(leastWidth(["1fr"])).toBe(60 + 28);
  });
});

/** A log that grows is filtered line by line, and comes to the same as one that is filtered at once. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { LogLine } from "../../api/live/types";
import { LogRows } from "./LogView";

const line = (seq: number, unit: string, level: LogLine["level"], message: string): LogLine => ({ seq, at: "2026-01-01T00:00:00Z", unit, level, message });
const ALL = { unit: undefined, level: "all", find: "" } as const;

describe("the rows of a log", () => {
  it("are the same however it grew", () => {
    const one = fc.tuple(fc.constantFrom("a", "b"), fc.constantFrom("info" as const, "warning" as const), fc.constantFrom("x", "x\ny", "z"));
    fc.assert(
      fc.property(fc.array(one, { maxLength: 60 }), fc.array(fc.nat(9), { maxLength: 20 }), fc.constantFrom(undefined, "a"), fc.constantFrom("all" as const, "warning" as const), (parts, cuts, unit, level) => {
        const lines = parts.map(([of, kind, text], index) => line(index + 1, of, kind, text));
        const grown = new LogRows();
        let shown = 0;
        for (const cut of cuts) {
          shown = Math.min(lines.length, shown + cut);
          grown.of(lines.slice(0, shown), { unit, level, find: "" });
        }
        expect(grown.of(lines, { unit, level, find: "" })).toEqual(new LogRows().of(lines, { unit, level, find: "" }));
      }),
    );
  });

  it("begin anew when older lines come before them, or a replay goes back", () => {
    const rows = new LogRows();
    const lines = [line(5, "a", "info", "five"), line(6, "a", "info", "six")];
    rows.of(lines, ALL);
    expect(rows.of([line(4, "a", "info", "four"), ...lines], ALL).map((row) => row.seq)).toEqual([4, 5, 6]);
    expect(rows.of([line(4, "a", "info", "four")], ALL).map((row) => row.seq)).toEqual([4]);
  });
});

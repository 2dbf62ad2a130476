/** What a reader of a plan is told first. */
import { describe, expect, it } from "vitest";

import type { UnitModel } from "../../api/live/model";
import { noCounts } from "../../api/live/model";
import type { ResourceRow } from "../../api/live/types";
import { risksOf } from "./risks";

function unit(name: string, byOp: Record<string, number>, more: Partial<UnitModel> = {}): UnitModel {
  return { name, layer: 0, needs: [], status: "succeeded", resources: { ...noCounts(), by_op: byOp }, phases: [], ...more };
}

function row(name: string, type: string, op: string, more: Partial<ResourceRow> = {}): ResourceRow {
  return { urn: `urn:${name}`, name, type, op, status: "planned", ...more };
}

describe("what is read first", () => {
  it("is nothing when resources are only created with what is known", () => {
    expect(risksOf([unit("network", { create: 12 })])).toEqual([]);
  });

  it("puts lost data before deletes, deletes before replacements, and unknown values last", () => {
    const rows = new Map([
      ["database", [row("orders", "aws:rds/instance:Instance", "replace", { properties: [{ path: "engine", replaces: true }] })]],
      ["network", [row("ssh", "aws:ec2/securityGroupRule:SecurityGroupRule", "delete"), row("vpc", "aws:ec2/vpc:Vpc", "update", { properties: [{ path: "id", unknown: true }] })]],
    ]);
    const risks = risksOf([unit("network", { delete: 1, update: 1 }), unit("database", { replace: 1 })], rows);
    expect(risks.map((risk) => [risk.unit, risk.word])).toEqual([
      ["database", "no way back in place"],
      ["network", "delete"],
      ["database", "new identity"],
      ["network", "who may do what"],
      ["network", "1 unknown"],
    ]);
    expect(risks[2]?.about).toContain("engine");
  });

  it("names a unit that could not be planned before everything else", () => {
    const risks = risksOf([unit("a", { delete: 2 }), unit("b", {}, { status: "failed", message: "no such file\nat line 3" })]);
    expect(risks[0]?.title).toBe("b could not be planned.");
    expect(risks[0]?.about).toBe("no such file");
  });
});

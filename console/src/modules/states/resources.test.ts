/** The tree that a state's resources make. */
import { describe, expect, it } from "vitest";

import type { StateResource } from "../../api/queries/states";
import { resourceLines } from "./resources";

function one(name: string, parent?: string): StateResource {
  return { urn: `urn:pulumi:dev::shop::t::${name}`, type: "t", custom: true, protect: false, external: false, parent: parent ? `urn:pulumi:dev::shop::t::${parent}` : null } as StateResource;
}

const tree = (resources: StateResource[]) => resourceLines(resources).map((line) => `${" ".repeat(line.depth)}${line.name}`);

describe("resources of a state", () => {
  it("stand below what they are part of", () => {
    expect(tree([one("stack"), one("a", "stack"), one("b", "stack"), one("a1", "a")])).toEqual(["stack", " a", "  a1", " b"]);
  });

  it("are all there, also when a parent is missing or parents go in a circle", () => {
    expect(tree([one("lost", "nowhere"), one("x", "y"), one("y", "x")]).map((text) => text.trim()).sort()).toEqual(["lost", "x", "y"]);
  });
});

/** Views that people keep. */
import { describe, expect, it } from "vitest";

import { dropView, keepView, readViews, viewOf } from "./views";

function shelf(): Pick<Storage, "getItem" | "setItem"> & { kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return { kept, getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) };
}

describe("saved views", () => {
  it("belong to a person and a page, and a name exists once", () => {
    const place = shelf();
    keepView(place, "ada", "runs", { name: "Failed", search: { status: "ended" } });
    keepView(place, "ada", "runs", { name: "Failed", search: { find: "prod" } });
    expect(readViews(place, "ada", "runs")).toEqual([{ name: "Failed", search: { find: "prod" } }]);
    expect(readViews(place, "ada", "deployments")).toEqual([]);
    expect(readViews(place, "bob", "runs")).toEqual([]);
    expect(dropView(place, "ada", "runs", "Failed")).toEqual([]);
  });

  it("do not carry the tenant, and survive what is not one of them", () => {
    expect(viewOf({ t: "aurora", find: "x", view: undefined, status: "" })).toEqual({ find: "x" });
    const place = shelf();
    place.setItem("nimbus.views.ada.runs", '[{"name":1},{"name":"ok","search":{}}]');
    expect(readViews(place, "ada", "runs")).toEqual([{ name: "ok", search: {} }]);
    place.setItem("nimbus.views.ada.runs", "{");
    expect(readViews(place, "ada", "runs")).toEqual([]);
  });
});

/** What a tenant has: finding an item, what is around it, what happened to it, and what people add. */
import { expect, it } from "vitest";

import type { Scene } from "./scene";
import { setTheme, violations } from "./support";

export function itemTests(scene: Scene): void {
  let bucket = "";

  it("finds what runs deployed by any word of it, and shows what it is without its secrets", async () => {
    const { page } = scene;
    await scene.go("/cmdb");
    const find = page.getByLabel("Find items");
    await page.getByRole("table", { name: "Items" }).waitFor();
    await find.fill("nothing-like-this");
    await page.getByText("No item is like that").waitFor();
    await page.getByRole("button", { name: "Clear the filter" }).click();
    // The bucket, and the unit that gives its id to others.
    await find.fill(`bucket-1 ${scene.deployment}`);
    await page.getByText("2 items.", { exact: true }).waitFor();
    await page.getByRole("link", { name: "bucket-1", exact: true }).click();
    await page.getByRole("heading", { name: "bucket-1", exact: true }).waitFor();
    bucket = new URL(page.url()).pathname;
    await page.getByRole("table", { name: "Attributes" }).getByText("tags", { exact: true }).waitFor();
    expect(await page.getByRole("link", { name: `storage of ${scene.deployment} in dev` }).count()).toBe(1);
    await scene.settled();
  });

  it("draws what is around an item, and has the same as a table", async () => {
    const { page } = scene;
    await page.getByRole("tab", { name: "Relationships" }).click();
    const graph = page.getByRole("region", { name: "Graph of relationships" });
    await graph.getByRole("link", { name: /^bucket-1/ }).waitFor();
    const table = page.getByRole("table", { name: "Relationships" });
    await table.getByText("contains", { exact: true }).first().waitFor();
    for (const theme of ["dark", "light"] as const) {
      await setTheme(page, theme);
      expect(await violations(page)).toEqual([]);
    }
    await page.getByRole("group", { name: "How far" }).getByRole("button", { name: "1", exact: true }).click();
    await page.waitForURL(/depth=1/);
    // Every item of the graph leads on.
    await graph.getByRole("link").filter({ hasNotText: "bucket-1" }).first().click();
    await page.waitForURL((url) => url.pathname !== bucket && url.pathname.startsWith("/cmdb/resources/"));
    await scene.settled();
  });

  it("says what happened to an item, change by change", async () => {
    const { page } = scene;
    await scene.go(`${bucket}?tab=history`);
    const history = page.getByRole("list", { name: "History" });
    await history.getByText("Created", { exact: true }).waitFor();
    await history.getByText("attributes.size").first().waitFor();
    expect(await violations(page)).toEqual([]);
    await scene.settled();
  });

  it("finds items from every page in the field of the top bar", async () => {
    const { page } = scene;
    await scene.go("/audit");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("bucket-1");
    await page.getByRole("option", { name: /^bucket-1/ }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/cmdb\/resources\//);
    await page.getByRole("heading", { name: /^bucket-1/ }).waitFor();
  });

  it("lists every unit with how it stands, also at the address that others know", async () => {
    const { page } = scene;
    await scene.go("/infrastructure/stacks");
    await page.getByRole("heading", { name: "Units", exact: true }).waitFor();
    await page.getByLabel("Filter units").fill(`network ${scene.deployment}`);
    const row = page.getByRole("table", { name: "Units" }).getByRole("row").filter({ hasText: scene.deployment });
    await row.getByText("deployed", { exact: true }).waitFor();
    expect(await row.count()).toBe(1);
    await row.getByRole("link", { name: "network", exact: true }).click();
    await page.waitForURL(/\/dev\/units\/network\?.*kind=rehearsal/);
    await page.getByRole("cell", { name: "vpc-1", exact: true }).waitFor();
  });

  it("imports a file whole or not at all, and relates, moves and takes back what people add", async () => {
    const { page } = scene;
    await scene.api.call("PUT", "/cmdb/classes/firewall", { description: "what stands before a network" });
    await scene.go("/cmdb");
    await page.getByRole("button", { name: "Import…" }).click();
    const dialog = page.getByRole("dialog");
    const content = dialog.getByLabel("Content");
    await content.fill('{"key": "fw-1", "class": "no-such-class", "name": "edge-fw"}');
    await dialog.getByRole("button", { name: "Check it" }).click();
    await dialog.getByRole("alert").waitFor();
    expect(await dialog.getByRole("button", { name: "Import", exact: true }).getAttribute("aria-disabled")).toBe("true");
    await content.fill('{"key": "fw-1", "class": "firewall", "name": "edge-fw", "attributes": {"ports": 8}}');
    await dialog.getByRole("button", { name: "Check it" }).click();
    await dialog.getByText("Nothing is wrong with it: 1 new.").waitFor();
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Import", exact: true }).click();
    await page.getByRole("table", { name: "Imports" }).getByText("imported").waitFor();
    await page.getByRole("tab", { name: "Compartments" }).click();
    await page.getByRole("button", { name: "New compartment" }).click();
    await page.getByLabel("Name").fill("edge");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("link", { name: "Items in edge" }).waitFor();
    await page.getByRole("tab", { name: "Items" }).click();
    await page.getByLabel("Find items").fill("edge-fw");
    await page.getByRole("link", { name: "edge-fw", exact: true }).click();
    await page.getByRole("button", { name: "Move…" }).click();
    await page.getByRole("dialog").getByLabel("Compartment").selectOption({ label: "edge" });
    await page.getByRole("dialog").getByRole("button", { name: "Move", exact: true }).click();
    await page.getByRole("definition").filter({ hasText: /^edge$/ }).waitFor();
    await page.getByRole("button", { name: "Relate…" }).click();
    await page.getByLabel("Relationship").fill("protects");
    await page.getByLabel("Id of the other item").fill(bucket.split("/").at(-1) ?? "");
    await page.getByRole("dialog").getByRole("button", { name: "Relate", exact: true }).click();
    const row = page.getByRole("table", { name: "Relationships" }).getByRole("row").filter({ hasText: "protects" });
    await row.getByRole("button", { name: "Take back" }).click();
    await page.getByText("Nothing is known to be around it").waitFor();
    await page.getByRole("tab", { name: "History" }).click();
    await page.getByRole("list", { name: "History" }).getByText("Moved", { exact: true }).waitFor();
  });
}

/** What was deployed over time: versions with their differences, the journal, and a repair step by step. */
import { expect, it } from "vitest";

import { RUN_MS } from "./scene";
import type { Scene } from "./scene";
import { violations } from "./support";

export function stateTests(scene: Scene): void {
  it("shows what each operation changed in a unit, version by version", async () => {
    const { page } = scene;
    await scene.go(`${scene.environment}/units/storage?kind=rehearsal&tab=versions`);
    const list = page.getByRole("list", { name: "Versions, newest first" });
    const version = (number: string) => list.getByRole("listitem").filter({ has: page.getByText(number, { exact: true }) }).getByRole("button");
    await version("2").click();
    const difference = page.getByRole("region", { name: "Difference" });
    const bucket = difference.getByRole("article", { name: "bucket-1, update" });
    await bucket.waitFor();
    const text = await bucket.textContent();
    expect(text).toContain("tags.team");
    expect(text).toContain('"orders"');
    // The first one is compared with nothing, and a secret has a word.
    await version("1").click();
    await difference.getByRole("article", { name: "bucket-1, create" }).waitFor();
    await difference.getByText("secret", { exact: true }).first().waitFor();
    await page.waitForURL(/to=/);
    await page.reload();
    await difference.getByRole("article", { name: "bucket-1, create" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await scene.settled();
  });

  it("examines a state, shows what a repair would change, and keeps the version before it", async () => {
    const { page } = scene;
    const unit = `${scene.environment}/units/dns?kind=rehearsal`;
    await scene.go(`${unit}&tab=repair`);
    await page.getByText("The state is sound").waitFor();
    await page.getByText("Nothing is open").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByLabel("Resource", { exact: true }).selectOption({ label: "zone-1 (aws:route53/zone:Zone)" });
    await page.getByRole("button", { name: "Remove from the state…" }).click();
    await page.getByRole("button", { name: "Show what it changes" }).click();
    await page.getByRole("dialog").getByRole("article", { name: "zone-1, delete" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Remove it from the state" }).click();
    await page.getByText("The state before it is among the versions.").waitFor();
    await scene.go(`${unit}&tab=versions`);
    await page.getByRole("button", { name: /import/ }).first().waitFor();
    await scene.go(unit);
    await page.getByText(/^\d+ resources?$/).first().waitFor();
    expect(await page.getByRole("cell", { name: "zone-1", exact: true }).count()).toBe(0);
    // The next deploy makes it again: nothing is lost but what was recorded.
    const run = await scene.api.start("deploy", scene.deployment, { stacks: ["dns"], force: true });
    await scene.go(`/runs/${run}`);
    await page.getByText("Succeeded", { exact: true }).first().waitFor({ timeout: RUN_MS });
  });

  it("asks for the id before anything is destroyed, and lists what would go", async () => {
    const { page } = scene;
    await scene.go(scene.environment);
    await page.getByRole("button", { name: "Destroy…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/^\d+ resources$/).waitFor();
    await dialog.getByText(/network \d+/).waitFor();
    const act = dialog.getByRole("button", { name: "Destroy (rehearsal)" });
    expect(await act.getAttribute("aria-disabled")).toBe("true");
    await dialog.getByLabel(`Type ${scene.deployment} to confirm`).fill(scene.deployment);
    expect(await act.getAttribute("aria-disabled")).toBe(null);
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Cancel" }).click();
  });
}

/** What somebody wants to be told, and the receivers that a tenant has. */
import { expect, it } from "vitest";

import type { Scene } from "./scene";
import { violations } from "./support";

export function toldTests(scene: Scene): void {
  it("keeps what somebody wants to be told, and how", async () => {
    const { page } = scene;
    await scene.go("/settings/notifications");
    const failed = () => page.getByRole("group", { name: "By mail: A run of yours failed" });
    await page.getByText("This server sends no mail").waitFor();
    await failed().getByRole("button", { name: "Digest" }).click();
    await failed().getByRole("button", { name: "Digest", pressed: true }).waitFor();
    await page.getByRole("button", { name: "Weekly" }).click();
    await page.getByLabel("Day of the week").selectOption("Friday");
    await page.getByLabel("Hour in UTC").selectOption("6");
    // Chosen in quick succession, each goes on from the one before.
    await page.waitForResponse(async (response) => response.request().method() === "GET" && response.url().endsWith("/preferences") && ((await response.json()) as { digest: { hour: number } }).digest.hour === 6);
    await page.reload();
    await failed().getByRole("button", { name: "Digest", pressed: true }).waitFor();
    expect(await page.getByLabel("Day of the week").inputValue()).toBe("5");
    expect(await page.getByLabel("Hour in UTC").inputValue()).toBe("6");
    expect(await violations(page)).toEqual([]);
  });

  it("makes a webhook whose secret is shown once, tries it, and shows what was sent", async () => {
    const { page } = scene;
    await scene.go("/settings/notifications?tab=webhooks");
    await page.getByRole("button", { name: "New webhook" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("pager");
    await dialog.getByLabel("Address").fill("http://hooks.example.org/nimbus");
    await dialog.getByRole("button", { name: "Create" }).click();
    // Plain text would tell everybody on the way.
    await dialog.getByRole("alert").first().waitFor();
    await dialog.getByLabel("Address").fill("https://hooks.example.org/nimbus");
    await dialog.getByLabel("a run failed").check();
    await dialog.getByRole("button", { name: "Create" }).click();
    const shown = page.getByRole("dialog", { name: "The secret of pager" });
    const secret = (await shown.getByText(/^whsec_/).textContent()) ?? "";
    expect(secret.length).toBeGreaterThan(20);
    expect(await violations(page)).toEqual([]);
    await shown.getByRole("button", { name: "I have kept it" }).click();
    await page.reload();
    await page.getByRole("table", { name: "Webhooks" }).getByText("pager", { exact: true }).waitFor();
    expect(await page.content()).not.toContain(secret);
    await page.getByRole("button", { name: "What to do with pager" }).click();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("menuitem", { name: "Send a test message" }).click();
    await page.getByText("It is on its way").waitFor();
    await page.getByRole("tab", { name: "Sent" }).click();
    await page.getByRole("table", { name: "Sent" }).getByRole("button", { name: "Test message" }).first().click();
    await page.getByRole("dialog", { name: /^Test message/ }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Close" }).last().click();
    await page.getByRole("tab", { name: "Webhooks" }).click();
    await page.getByRole("button", { name: "What to do with pager" }).click();
    await page.getByRole("menuitem", { name: "Delete…" }).click();
    await page.getByLabel("Type pager to confirm").fill("pager");
    await page.getByRole("button", { name: "Delete the webhook" }).click();
    await page.getByText("No webhook yet").waitFor();
  });
}

/** Runs that wait for people: who is told, who decides, and what becomes of the run. */
import { expect, it } from "vitest";

import type { Api } from "./content";
import { RUN_MS } from "./scene";
import type { Scene } from "./scene";
import { setTheme, violations } from "./support";

const GUARDED = "dev";

export function approvalTests(scene: Scene, deployment: string): void {
  let asking: Api;
  let plan = "";
  const ask = (who: Api) => who.start("deploy", deployment, { environment: GUARDED, plan });

  it("tells whoever may decide, on every page, and a denial ends the run before it began", async () => {
    const { page } = scene;
    await scene.api.deployment(deployment);
    await scene.api.guard(GUARDED);
    asking = await scene.api.as(await scene.api.person("developer", "asker"));
    // What is approved is a plan.
    plan = await asking.start("preview", deployment, { environment: GUARDED });
    await scene.go(`/plans/${plan}`);
    await page.getByText("Ready to decide").waitFor({ timeout: RUN_MS });
    await scene.go("/audit");
    await page.getByRole("link", { name: "Approvals", exact: true }).first().waitFor();
    const run = await ask(asking);
    // Nobody reloads anything.
    await page.getByRole("link", { name: "Approvals, 1 for you" }).waitFor();
    await page.getByRole("button", { name: /^Notifications, \d+ unread$/ }).click();
    const told = page.getByRole("dialog", { name: "Notifications" });
    await told.getByRole("listitem").filter({ hasText: deployment }).filter({ hasText: "not read" }).first().waitFor();
    for (const theme of ["dark", "light"] as const) {
      await setTheme(page, theme);
      expect(await violations(page)).toEqual([]);
    }
    await told.getByRole("listitem").filter({ hasText: deployment }).first().getByRole("button").click();
    await page.waitForURL(/\/approvals\//);
    await page.getByRole("heading", { name: `Deploy ${deployment} in ${GUARDED}` }).waitFor();
    await page.getByText("Waits for you").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Deny…" }).click();
    const dialog = page.getByRole("dialog");
    const act = dialog.getByRole("button", { name: "Deny", exact: true });
    expect(await act.getAttribute("title")).toBe("Say why first.");
    await dialog.getByLabel("Reason").fill("not before the weekend");
    expect(await violations(page)).toEqual([]);
    await act.click();
    await page.getByText("Denied", { exact: true }).first().waitFor();
    await page.getByRole("list", { name: "Steps" }).getByText("not before the weekend").waitFor();
    // Counted no more, and the run changed nothing.
    await page.getByRole("link", { name: "Approvals", exact: true }).first().waitFor();
    const ended = await scene.api.call("GET", `/runs/${run}`);
    expect([ended["status"], ended["began_at"] ?? null]).toEqual(["ended", null]);
  });

  it("says to whoever asked that others decide", async () => {
    const { page } = scene;
    const own = await ask(scene.api);
    await scene.go(`/runs/${own}`);
    await page.getByRole("note", { name: "Approval" }).getByText("This run waits for approval.").waitFor();
    await page.getByRole("link", { name: "Approvals", exact: true }).first().waitFor();
    await scene.api.call("POST", `/runs/${own}/cancel`);
  });

  it("is first on the first page for whoever may decide, and is approved from there", async () => {
    const { page } = scene;
    const run = await ask(asking);
    await scene.go(`/runs/${run}`);
    await page.getByRole("note", { name: "Approval" }).getByText("This run waits for your decision.").waitFor();
    expect(await violations(page)).toEqual([]);
    await scene.go("/");
    const needs = page.getByRole("region", { name: "Needs you" });
    await needs.getByText(`Deploy ${deployment} in ${GUARDED}`).waitFor();
    expect(await violations(page)).toEqual([]);
    await needs.getByRole("link", { name: /^Open the approval of/ }).press("Enter");
    await page.getByRole("button", { name: "Approve…" }).press("Enter");
    await page.getByRole("dialog").getByLabel("Comment (optional)").fill("looked at it");
    await page.getByRole("dialog").getByRole("button", { name: "Approve", exact: true }).press("Enter");
    await page.getByText("Approved", { exact: true }).first().waitFor();
    // What was approved is what happens.
    await scene.go(`/runs/${run}`);
    await page.getByText("Succeeded", { exact: true }).first().waitFor({ timeout: RUN_MS });
    await scene.api.call("DELETE", `/approval-policies/${GUARDED}`);
  });
}

/** Drafts, sessions, tabs and networks: what is kept, what ends, and how a page says how fresh it is. */
import { expect, it } from "vitest";

import { RUN_MS } from "./scene";
import type { Scene } from "./scene";
import { ADMIN, signIn, violations } from "./support";

/** Enough of the shop to have something to watch. */
const FEW = { force: true, stacks: ["network", "dns", "security"] };

export function sessionTests(scene: Scene): void {
  it("breaks a rehearsal by order of whoever starts it, and goes back by itself", async () => {
    const { page } = scene;
    await scene.api.put("cluster");
    await scene.go(scene.environment);
    await page.getByRole("button", { name: "Deploy…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Break something (optional)").fill("on: create, type: aws:sns/topic:Topic, do: fail, message: the account may have no more topics");
    await scene.api.put("monitoring", { extra: "aws:sns/topic:Topic" });
    await dialog.getByRole("button", { name: "Deploy (rehearsal)" }).click();
    await page.waitForURL(/\/runs\//);
    const cause = page.getByRole("alert", { name: "What failed first" });
    await cause.getByText("the account may have no more topics").first().waitFor({ timeout: RUN_MS });
    await page.getByText("Rolled back", { exact: true }).first().waitFor({ timeout: RUN_MS });
    expect(await violations(page)).toEqual([]);
    await scene.api.put("monitoring");
  });

  it("deploys what a plan shows, held to it", async () => {
    const { page } = scene;
    await scene.api.put("dns", { changed: true });
    await scene.go(`/plans/${await scene.api.start("preview", scene.deployment)}`);
    await page.getByText("Ready to decide").waitFor({ timeout: RUN_MS });
    await page.getByText("Nothing moved since planning").waitFor();
    await page.getByRole("complementary", { name: "Decision" }).getByRole("button", { name: "Deploy…" }).press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/^Held to plan R\d+/).waitFor();
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Deploy (rehearsal)" }).press("Enter");
    await page.waitForURL(/\/runs\//);
    await page.getByText("held to the").waitFor();
    await page.getByText("Succeeded", { exact: true }).first().waitFor({ timeout: RUN_MS });
  });

  it("keeps a draft on the server: another machine goes on with it", async () => {
    const { page } = scene;
    await scene.go("/deployments/new?step=1");
    await page.getByLabel("Project").fill("orders-of-ada");
    await page.getByText("Saved. You can go on").waitFor();
    const other = await scene.browser.newContext({ viewport: { width: 1280, height: 800 } });
    const elsewhere = await other.newPage();
    await signIn(elsewhere, scene.site);
    await elsewhere.goto(`${scene.site.front}/deployments/new?step=1`);
    await elsewhere.getByLabel("Project").waitFor();
    expect(await elsewhere.getByLabel("Project").inputValue()).toBe("orders-of-ada");
    await other.close();
  });

  it("ends a revoked session within five seconds, keeps the draft, and leads back to the same field", async () => {
    const { page } = scene;
    await scene.go("/deployments/new?step=1");
    const field = page.getByLabel("Description");
    await field.fill("typed before the session ended");
    await page.getByText("Saved. You can go on").waitFor();
    await field.focus();
    const other = await scene.browser.newContext({ viewport: { width: 1280, height: 800 } });
    const elsewhere = await other.newPage();
    await signIn(elsewhere, scene.site);
    await elsewhere.goto(`${scene.site.front}/settings/profile`);
    await elsewhere.getByRole("button", { name: "End all others" }).click();
    await elsewhere.getByText("You are signed in only here.").waitFor();
    const ended = Date.now();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    // Five seconds, and what a busy machine takes to draw the page.
    expect(Date.now() - ended).toBeLessThan(10_000);
    await other.close();
    await page.getByLabel("Password").fill(ADMIN.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await field.waitFor();
    expect(await field.inputValue()).toBe("typed before the session ended");
    await page.waitForFunction(() => document.activeElement instanceof HTMLInputElement && document.activeElement.labels?.[0]?.textContent === "Description");
    await page.getByRole("button", { name: "Discard the draft" }).click();
  });

  it("has two tabs in two tenants, each with its own, and nothing of the other", async () => {
    const { page, context } = scene;
    await scene.go("/deployments");
    await page.getByRole("row", { name: new RegExp(scene.deployment) }).waitFor();
    const second = await context.newPage();
    await second.goto(`${scene.site.front}/deployments?t=aurora`);
    await second.getByRole("heading", { name: "Deployments", exact: true }).waitFor();
    await second.locator(".skeleton").first().waitFor({ state: "detached" });
    await second.getByText("Nothing is deployed yet").waitFor();
    expect(await second.content()).not.toContain(scene.deployment);
    await second.getByRole("link", { name: "Runs", exact: true }).click();
    await second.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    expect(second.url()).toContain("t=aurora");
    // The first tab is where it was.
    await page.reload();
    await page.getByRole("row", { name: new RegExp(scene.deployment) }).waitFor();
    expect(page.url()).not.toContain("t=");
    // And switching leaves nothing of the tenant that one leaves.
    await page.getByRole("button", { name: /Tenant .*, switch/ }).click();
    await page.getByRole("dialog", { name: "Tenants" }).getByRole("button", { name: /Aurora Retail/ }).click();
    await page.waitForURL(/t=aurora/);
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
    await page.waitForFunction((id) => !document.body.textContent?.includes(id), scene.deployment);
    await second.close();
  });

  it("follows a run by questions where no socket comes through, and through the loss of the network", async () => {
    const { context } = scene;
    // Other sessions were ended, that of the tests too.
    await scene.api.enter();
    const page = await context.newPage();
    page.setDefaultTimeout(45_000);
    // As behind a proxy that closes them.
    await page.routeWebSocket(/\/progress/, (socket) => void socket.close());
    const run = await scene.api.start("deploy", scene.deployment, { ...FEW, latency_ms: 150 });
    await page.goto(`${scene.site.front}/runs/${run}`);
    await page.getByRole("status", { name: /^Data: (Reconnecting|Paused)/ }).waitFor();
    await context.setOffline(true);
    await page.getByRole("status", { name: /^Data: Paused/ }).waitFor();
    expect(await violations(page)).toEqual([]);
    await context.setOffline(false);
    await page.getByText("Succeeded", { exact: true }).first().waitFor({ timeout: RUN_MS });
    await page.getByText("3 of 3").first().waitFor();
    await page.getByRole("status", { name: "Data: Complete" }).waitFor();
    await page.close();
  });

  it("shows the same run after its socket was cut again and again", async () => {
    const page = await scene.context.newPage();
    page.setDefaultTimeout(45_000);
    let cut = 0;
    await page.routeWebSocket(/\/progress/, (socket) => {
      const server = socket.connectToServer();
      let heard = 0;
      server.onMessage((message) => {
        socket.send(message);
        heard += 1;
        // After every few messages, in the middle of what is being told.
        if (heard >= 4 && cut < 12) {
          cut += 1;
          void socket.close();
          void server.close();
        }
      });
    });
    const run = await scene.api.start("deploy", scene.deployment, FEW);
    await page.goto(`${scene.site.front}/runs/${run}`);
    await page.getByText("Succeeded", { exact: true }).first().waitFor({ timeout: RUN_MS });
    await page.getByText("3 of 3").first().waitFor();
    expect(cut).toBeGreaterThan(1);
    const told = await page.locator(".tot").textContent();
    await page.reload();
    await page.getByText("3 of 3").first().waitFor();
    // What was put together from pieces is what the server says at once.
    await page.waitForFunction((text) => document.querySelector(".tot")?.textContent === text, told);
    await page.close();
  });

  it("ends all other sessions of a person, and they have to sign in again", async () => {
    const { page } = scene;
    const other = await scene.browser.newContext({ viewport: { width: 1280, height: 800 } });
    const elsewhere = await other.newPage();
    await signIn(elsewhere, scene.site);
    await scene.go("/settings/profile");
    await page.getByRole("row").nth(2).waitFor();
    await page.getByRole("button", { name: "End all others" }).click();
    await page.getByText("You are signed in only here.").waitFor();
    // Nobody touches anything there.
    await elsewhere.getByRole("heading", { name: "Sign in" }).waitFor();
    await other.close();
  });

  it("says how fresh it is when the network goes, and comes back by itself", async () => {
    const { page, context } = scene;
    await scene.go("/runs");
    await page.getByRole("status", { name: "Data: Live" }).waitFor();
    await context.setOffline(true);
    await page.getByRole("status", { name: /^Data: Paused/ }).waitFor();
    // What was read stays, and every page says that nothing can be done with it now.
    await page.getByRole("alert").getByText("The server does not answer").waitFor();
    await page.getByRole("table", { name: "Runs" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await context.setOffline(false);
    await page.getByRole("status", { name: "Data: Live" }).waitFor();
    await page.getByRole("alert").waitFor({ state: "detached" });
  });

  it("ends a session that was revoked elsewhere, and goes on after signing in again", async () => {
    const { page, context } = scene;
    await scene.go("/settings/profile");
    await page.evaluate(() => localStorage.setItem("nimbus.csrf", "forgotten"));
    await context.clearCookies();
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor({ timeout: 20_000 });
    await page.getByLabel("Password").fill(ADMIN.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Runs" }).waitFor();
  });
}

/** The console in a real browser, against the real binary, in rehearsal. */
import { mkdirSync } from "node:fs";

import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

import { Api } from "./content";
import { ADMIN, SHOTS, Site, Watch, lacking, openBrowser, setTheme, signIn, tellSkip, violations } from "./support";

const missing = lacking();
if (missing) tellSkip(missing, "console: browser tests");

const DEPLOYMENT = "D1SHOP";

describe.skipIf(missing !== null)("the console", () => {
  const site = new Site();
  const api = new Api(site);
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let watch: Watch;
  let goodRun = "";
  let badRun = "";
  let plan = "";

  beforeAll(async () => {
    mkdirSync(SHOTS, { recursive: true });
    await site.start();
    browser = await openBrowser();
    context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" });
    watch = new Watch(context, site.front);
    page = await context.newPage();
    page.setDefaultTimeout(20_000);
  });

  afterAll(async () => {
    await browser?.close();
    await site.end();
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") await shot("failed");
  });

  const shot = (name: string) => page.screenshot({ path: `${SHOTS}/${name}.png` });
  const go = async (path: string) => {
    await page.goto(site.front + path);
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
  };

  it("sets up the first administrator from the printed link, once", async () => {
    const link = new URL(site.setupLink);
    await page.goto(site.front + link.pathname + link.search);
    await page.getByLabel("Your name").fill(ADMIN.name);
    expect(page.url()).not.toContain("token");
    expect(await violations(page)).toEqual([]);
    await page.getByLabel("Email").fill(ADMIN.email);
    await page.getByLabel("Password", { exact: true }).fill("short");
    await page.getByLabel("Password again").fill("short");
    await page.getByLabel("Password", { exact: true }).fill(ADMIN.password);
    await page.getByLabel("Password again").fill(ADMIN.password);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("You are signed in").waitFor();
    expect(await violations(page)).toEqual([]);
    site.setupLink = "";
    await page.goto(`${site.front}/setup`);
    await page.getByText("The first run is over").waitFor();
  });

  it("signs in by hand, refuses a wrong password, and comes back to where one was", async () => {
    await context.clearCookies();
    await page.evaluate(() => localStorage.clear());
    await page.goto(`${site.front}/runs?status=ended`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByLabel("Email").fill(ADMIN.email);
    await page.getByLabel("Password").fill("not the password");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Password").fill(ADMIN.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Runs" }).waitFor();
    expect(page.url()).toContain("status=ended");
  });

  it("leads from a template to a finished plan with the keyboard alone", async () => {
    await api.enter();
    await api.fill();
    await go("/");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("new deployment");
    await page.keyboard.press("Enter");
    const template = page.getByRole("radio", { name: /^shop/ });
    await template.waitFor();
    await template.focus();
    await page.keyboard.press("Space");
    await page.keyboard.press("Enter");
    for (const [label, text] of [["Organization", "Aurora"], ["Project", "storefront"]] as const) {
      await page.getByRole("button", { name: "Continue" }).waitFor();
      if (label === "Organization") await page.getByRole("button", { name: "Continue" }).press("Enter");
      const field = page.getByLabel(label);
      await field.waitFor();
      await field.focus();
      await page.keyboard.press("Control+a");
      await page.keyboard.type(text);
    }
    for (const next of ["Account of dev", "Region"]) {
      await page.getByRole("button", { name: "Continue" }).press("Enter");
      await page.getByLabel(next).waitFor();
    }
    await page.getByRole("button", { name: "Continue" }).press("Enter");
    await page.getByRole("button", { name: "Create and plan" }).press("Enter");
    await page.waitForURL(/\/plans\//);
    plan = new URL(page.url()).pathname;
    await page.getByText("Ready to decide").waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: /monitoring/ }).first().waitFor();
    expect(await page.getByRole("complementary", { name: "Decision" }).textContent()).toContain("Deploy");
  });

  it("shows a run while it happens, and pauses and resumes it", async () => {
    await api.deployment(DEPLOYMENT);
    await go(`/deployments/${DEPLOYMENT}`);
    await page.getByRole("button", { name: "Deploy…" }).first().click();
    await page.getByRole("button", { name: "Deploy (rehearsal)" }).click();
    await page.waitForURL(/\/runs\//);
    goodRun = new URL(page.url()).pathname;
    await page.getByRole("button", { name: /^network/ }).first().waitFor();
    await page.getByRole("button", { name: "Pause new units" }).click();
    await page.getByRole("button", { name: "Resume" }).first().waitFor({ timeout: 60_000 });
    await page.getByText(/^(Paused|Pausing)$/).first().waitFor({ timeout: 60_000 });
    await shot("run-live-light");
    await page.getByText("Paused", { exact: true }).first().waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Succeeded", { exact: true }).first().waitFor({ timeout: 60_000 });
    expect(await page.title()).toContain("REHEARSAL");
    await page.keyboard.press("j");
    await page.waitForURL(/unit=/);
  });

  it("replays a finished run from its events", async () => {
    await page.getByRole("button", { name: "Replay" }).click();
    const time = page.getByRole("slider", { name: "Time of the run" });
    await time.waitFor();
    await page.getByRole("button", { name: "Hold" }).click();
    await time.fill(String(await time.getAttribute("min")));
    await page.getByText("0 of 8").first().waitFor();
    await page.getByRole("button", { name: "End the replay" }).click();
    await page.getByText("8 of 8").first().waitFor();
  });

  it("says what failed first, in the provider's words, and offers the way on", async () => {
    await api.put("cluster", true);
    badRun = `/runs/${await api.start("deploy", DEPLOYMENT, { on_failure: "hold" })}`;
    await go(badRun);
    const cause = page.getByRole("alert", { name: "What failed first" });
    await cause.waitFor({ timeout: 60_000 });
    expect(await cause.textContent()).toContain("cluster failed first");
    await page.getByText("the quota of this account is used up").first().waitFor();
    await page.keyboard.press("f");
    await page.getByRole("complementary", { name: "Unit cluster" }).waitFor();
    await page.getByRole("link", { name: "Edit and plan again" }).waitFor();
  });

  it("rolls back with the keyboard alone", async () => {
    const button = page.getByRole("button", { name: "Roll back…" });
    await button.waitFor({ timeout: 60_000 });
    await button.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.getByRole("button", { name: "Roll back (rehearsal)" }).press("Enter");
    await page.waitForURL((url) => url.pathname.startsWith("/runs/") && url.pathname !== badRun);
    await page.getByText(/^(Succeeded|Rolled back)$/).first().waitFor({ timeout: 60_000 });
  });

  it("makes a tenant, a user with a role, and says why she may", async () => {
    await go("/tenants");
    await page.getByRole("button", { name: "New tenant" }).click();
    await page.getByLabel("Name").fill("Aurora Retail");
    await page.getByLabel("Slug").fill("aurora");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("link", { name: "Aurora Retail" }).waitFor();
    await page.getByRole("button", { name: /Tenant .*, switch/ }).click();
    await page.getByRole("dialog", { name: "Tenants" }).getByRole("button", { name: /Aurora Retail/ }).click();
    await page.waitForURL(/t=aurora/);
    await page.getByRole("link", { name: "Users" }).click();
    await page.getByRole("button", { name: "New user" }).click();
    await page.getByLabel("Name").fill("Mira Okafor");
    await page.getByLabel("Address").fill("mira@example.org");
    await page.getByLabel("First password").fill("a long enough password");
    await page.getByLabel("Role").selectOption("viewer");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("link", { name: "Mira Okafor" }).click();
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByText("No.", { exact: true }).waitFor();
    expect(page.url()).toContain("t=aurora");
  });

  it("gives a viewer no way to change anything, and says why", async () => {
    const other = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const viewer = await other.newPage();
    await signIn(viewer, site, { email: "mira@example.org", password: "a long enough password", tenant: "aurora" });
    await viewer.goto(`${site.front}/deployments`);
    await viewer.getByRole("heading", { name: "Deployments", exact: true }).waitFor();
    expect(await viewer.getByRole("link", { name: "New deployment" }).count()).toBe(0);
    expect(await viewer.getByRole("button", { name: "New deployment" }).first().getAttribute("title")).toContain("deployment:definition:create");
    expect(await viewer.getByRole("link", { name: "Service accounts" }).count()).toBe(0);
    await viewer.goto(`${site.front}${goodRun}`);
    await viewer.getByText("Nothing is here").waitFor();
    await other.close();
  });

  it("proves the audit trail", async () => {
    await go("/audit");
    await page.getByRole("button", { name: "Prove the chain" }).click();
    await page.getByText("Intact.").waitFor();
  });

  it("has no violation of WCAG 2.2 AA on any page in either theme", async () => {
    const pages = ["/", "/deployments", "/deployments/new", `/deployments/${DEPLOYMENT}`, `/deployments/${DEPLOYMENT}/dev`, "/runs", goodRun, badRun, plan, "/templates", "/components", "/tenants", "/users", "/groups", "/roles", "/keys", "/audit", "/settings/profile", "/settings/system"];
    const found: string[] = [];
    for (const path of pages) {
      await go(path);
      await page.waitForLoadState("networkidle");
      for (const theme of ["light", "dark"] as const) {
        await setTheme(page, theme);
        found.push(...(await violations(page)).map((text) => `${path} ${theme}: ${text}`));
        await shot(`${path.split("/").slice(1, 2).join("") || "home"}${path === badRun ? "-failed" : ""}-${theme}`);
      }
    }
    expect(found).toEqual([]);
  });

  it("ends a session that was revoked elsewhere, and goes on after signing in again", async () => {
    await go("/settings/profile");
    await page.evaluate(() => localStorage.setItem("nimbus.csrf", "forgotten"));
    await context.clearCookies();
    await page.getByRole("link", { name: "Runs" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor({ timeout: 20_000 });
    await page.getByLabel("Password").fill(ADMIN.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Runs" }).waitFor();
  });

  it("asked nothing of any other host and broke no policy", () => {
    expect(watch.problems).toEqual([]);
  });
});

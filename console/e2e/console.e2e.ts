/** The console in a real browser, against the real binary, in rehearsal. */
import { mkdirSync } from "node:fs";

import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

import { approvalTests } from "./approvals";
import { Api, CANARY } from "./content";
import { itemTests } from "./items";
import { phoneTest, violationTest } from "./pages";
import { RUN_MS } from "./scene";
import type { Scene } from "./scene";
import { sessionTests } from "./sessions";
import { roleTests } from "./roles";
import { stateTests } from "./states";
import { ADMIN, SHOTS, Site, Watch, lacking, openBrowser, signIn, tellSkip, violations } from "./support";
import { toldTests } from "./told";

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
  let changePlan = "";

  beforeAll(async () => {
    mkdirSync(SHOTS, { recursive: true });
    await site.start();
    browser = await openBrowser();
    context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" });
    watch = new Watch(context, site.front, CANARY);
    page = await context.newPage();
    page.setDefaultTimeout(45_000);
    Object.assign(scene, { browser, context, page, watch });
  });

  afterAll(async () => {
    await browser?.close();
    await site.end();
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") await shot("failed");
  });

  const shot = (name: string) => page.screenshot({ path: `${SHOTS}/${name}.png` });
  /** What is on screen is what there is: nothing is being read any more. */
  const settled = async () => {
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
    await watch.look(page);
  };
  const go = async (path: string) => {
    await page.goto(site.front + path);
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
  };

  // What is not there yet comes with the server and the browser.
  const scene = { site, api, deployment: DEPLOYMENT, environment: `/deployments/${DEPLOYMENT}/dev`, shot, go, settled } as unknown as Scene;

  it("sets up in five steps from the printed link, once, and ends on the real run screen", async () => {
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
    const checks = page.getByRole("list", { name: "System check" });
    await checks.getByText("PostgreSQL", { exact: true }).waitFor();
    await checks.getByText("Sandbox", { exact: true }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Continue" }).click();
    expect(await page.getByLabel("Rehearsal").isChecked()).toBe(true);
    expect(await violations(page)).toEqual([]);
    // The step is kept: whoever reloads goes on where they were.
    await page.reload();
    await page.getByRole("heading", { name: "Where to deploy first?" }).waitFor();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("button", { name: "Start the rehearsal" }).click();
    await page.waitForURL(/\/runs\/.*first=yes/);
    const note = page.getByRole("note", { name: "The first rehearsal" });
    await note.waitFor();
    await page.getByRole("heading", { name: /^Deploy D1DEMO/ }).waitFor();
    expect(await violations(page)).toEqual([]);
    await note.getByRole("link").click();
    await page.getByRole("navigation", { name: "Next steps" }).getByRole("link").nth(2).waitFor();
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
    // What the tests after this one work with.
    await api.enter();
    await api.fill();
    await api.deployment(DEPLOYMENT);
  });

  approvalTests(scene, "D1GATE");

  it("leads from a template to a finished plan with the keyboard alone", async () => {
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
    await page.getByText("Ready to decide").waitFor({ timeout: RUN_MS });
    await page.getByRole("button", { name: /monitoring/ }).first().waitFor();
    expect(await page.getByRole("complementary", { name: "Decision" }).textContent()).toContain("Deploy");
  });

  it("shows what a plan changes, property by property, and keeps what was reviewed", async () => {
    await page.getByRole("button", { name: "network: create 12" }).click();
    const network = page.getByRole("article", { name: "Changes of network" });
    await network.getByRole("article", { name: "vpc-1, create" }).waitFor();
    expect(await network.getByText("not known yet").count()).toBe(0);
    await network.getByText("tags", { exact: true }).first().waitFor();
    // A secret has a word in the place of its value.
    await network.getByText("secret", { exact: true }).first().waitFor();
    const kept = page.waitForResponse((response) => response.url().includes("/marks/") && response.request().method() === "PUT");
    await page.keyboard.press("x");
    await page.getByText("1 of 8 units reviewed").waitFor();
    expect((await kept).status()).toBe(204);
    // Kept on the server, not here.
    await page.evaluate(() => Object.keys(localStorage).filter((key) => !["nimbus.csrf", "nimbus.last-sign-in"].includes(key)).forEach((key) => localStorage.removeItem(key)));
    await page.reload();
    await page.getByText("1 of 8 units reviewed").waitFor();
    await page.getByLabel("Filter changes").fill("metricAlarm");
    await page.getByRole("article", { name: "metricalarm-8, create" }).waitFor();
    expect(await page.getByRole("article", { name: "Changes of network" }).count()).toBe(0);
    await page.getByLabel("Filter changes").fill("");
    for (const form of ["Graph", "List", "Matrix"]) {
      await page.getByRole("button", { name: form, exact: true }).click();
      expect(await violations(page)).toEqual([]);
    }
    await settled();
  });

  it("says that something moved since the plan was made, and offers another", async () => {
    await page.getByText("Nothing moved since planning").waitFor();
    const deployment = (await page.getByRole("heading", { level: 1 }).textContent())?.split(" ")[2] ?? "";
    await api.touch(deployment);
    await page.getByText("Something moved since planning").waitFor();
    await page.getByText("It was saved as revision 2").waitFor();
    await page.getByRole("button", { name: "Plan again…" }).waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it("shows a run while it happens, and pauses and resumes it", async () => {
    await go(`/deployments/${DEPLOYMENT}`);
    await page.getByRole("button", { name: "Deploy…" }).first().press("Enter");
    await page.getByRole("button", { name: "Deploy (rehearsal)" }).press("Enter");
    await page.waitForURL(/\/runs\//);
    goodRun = new URL(page.url()).pathname;
    await page.getByRole("button", { name: /^network/ }).first().waitFor();
    await page.getByRole("button", { name: "Pause new units" }).click();
    await page.getByRole("button", { name: "Resume" }).first().waitFor({ timeout: RUN_MS });
    await page.getByText(/^(Paused|Pausing)$/).first().waitFor({ timeout: RUN_MS });
    await shot("run-live-light");
    await page.getByText("Paused", { exact: true }).first().waitFor({ timeout: RUN_MS });
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Succeeded", { exact: true }).first().waitFor({ timeout: RUN_MS });
    expect(await page.title()).toContain("REHEARSAL");
    await page.keyboard.press("j");
    await page.waitForURL(/unit=/);
  });

  it("replays a finished run from its events", async () => {
    await page.getByRole("button", { name: "Replay" }).click();
    const time = page.getByRole("slider", { name: "Time of the run" });
    await time.waitFor();
    // Moving the time holds it, however far it has played by then.
    await time.focus();
    await page.keyboard.press("Home");
    await page.getByRole("button", { name: "Play", exact: true }).waitFor();
    await page.getByText("0 of 8").first().waitFor();
    await page.keyboard.press("End");
    await page.getByText("8 of 8").first().waitFor();
    await page.keyboard.press("Home");
    await page.getByText("0 of 8").first().waitFor();
    await page.getByRole("button", { name: "End the replay" }).click();
    await page.getByText("8 of 8").first().waitFor();
  });

  it("shows what was deployed: resources, outputs without secrets, and why a unit ran", async () => {
    await go(`/deployments/${DEPLOYMENT}/dev?tab=resources`);
    await page.getByRole("cell", { name: "vpc-1", exact: true }).waitFor();
    await page.getByLabel("Filter resources").fill("subnet-6");
    await page.getByText(/^1 of \d+ resources$/).waitFor();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export state" }).click();
    expect((await download).suggestedFilename()).toBe(`${DEPLOYMENT}-dev.json`);
    await page.getByRole("tab", { name: "Outputs" }).click();
    await page.getByText("secret, not shown").first().waitFor();
    await settled();
    await page.getByRole("button", { name: "Real", exact: true }).click();
    await page.getByText("No outputs").waitFor();
    await page.getByRole("button", { name: "Rehearsal", exact: true }).click();
    await page.getByRole("tab", { name: "Units" }).click();
    await page.getByRole("link", { name: "database", exact: true }).click();
    await page.getByRole("cell", { name: "instance-1", exact: true }).waitFor();
    await page.getByRole("tab", { name: "Why and needs" }).click();
    await page.getByRole("link", { name: "security", exact: true }).waitFor();
    expect(await violations(page)).toEqual([]);
    await settled();
  });

  it("promotes to the next environment through its gate, by a plan", async () => {
    await go(`/deployments/${DEPLOYMENT}`);
    const promote = page.getByRole("button", { name: "Promote to stage…" });
    await promote.waitFor();
    expect(await promote.getAttribute("title")).toBe("Enable stage first.");
    await page.getByRole("region", { name: "stage" }).getByRole("button", { name: "Enable" }).click();
    await page.waitForFunction(() => [...document.querySelectorAll("button")].some((one) => one.textContent?.startsWith("Promote to stage") && !one.hasAttribute("aria-disabled")));
    await promote.click();
    const dialog = page.getByRole("dialog", { name: `Promote ${DEPLOYMENT} from dev to stage` });
    await dialog.getByText("every change is shown before anything happens there").waitFor();
    await dialog.locator(".skeleton").waitFor({ state: "detached" });
    expect(await violations(page)).toEqual([]);
    // Somebody has looked, and says so.
    await dialog.getByLabel("Who looked at what").fill("Ada opened the shop");
    await dialog.getByRole("listitem").filter({ hasText: "smoke tests" }).getByRole("button", { name: "It is done" }).click();
    await dialog.getByRole("list", { name: "Gate of dev" }).getByText("Ada opened the shop").waitFor();
    await dialog.getByRole("button", { name: "Plan stage…" }).click();
    await page.getByRole("button", { name: "Plan (rehearsal)" }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await api.call("POST", `/deployments/${DEPLOYMENT}/environments/stage/disable`);
  });

  it("plans a change: what is updated from what to what", async () => {
    await api.put("storage", { changed: true });
    await go(`/plans/${await api.start("preview", DEPLOYMENT)}`);
    await page.getByText("Ready to decide").waitFor({ timeout: RUN_MS });
    const bucket = page.getByRole("article", { name: "bucket-1, update" });
    await bucket.waitFor();
    const text = await bucket.textContent();
    expect(text).toContain("tags.team");
    expect(text).toContain('"shop"');
    expect(text).toContain('"orders"');
    await page.getByText(/^1 of 8$|^1$/).first().waitFor();
    // What stays is a count until somebody wants to see it; a secret among it has a word here too.
    await bucket.getByRole("button", { name: /do(es)? not change$/ }).click();
    await bucket.getByText("stays", { exact: true }).first().waitFor();
    expect(await bucket.textContent()).toContain("secret");
    await page.getByRole("group", { name: "Properties of storage" }).getByRole("button", { name: "Changed only" }).click();
    await bucket.getByText("stays", { exact: true }).first().waitFor({ state: "detached" });
    await settled();
    changePlan = new URL(page.url()).pathname;
  });

  it("says what failed first, in the provider's words, and offers the way on", async () => {
    await api.put("cluster", { fails: true });
    badRun = `/runs/${await api.start("deploy", DEPLOYMENT, { on_failure: "hold" })}`;
    await go(badRun);
    const cause = page.getByRole("alert", { name: "What failed first" });
    await cause.waitFor({ timeout: RUN_MS });
    expect(await cause.textContent()).toContain("cluster failed first");
    await cause.getByText("the quota of this account is used up").waitFor();
    await page.keyboard.press("f");
    await page.getByRole("complementary", { name: "Unit cluster" }).waitFor();
    await page.getByRole("link", { name: "Edit and plan again" }).waitFor();
  });

  it("names on the first page what needs somebody", async () => {
    const run = page.url();
    await go("/");
    const needs = page.getByRole("region", { name: "Needs you" });
    await needs.getByRole("link", { name: `Deploy ${DEPLOYMENT}` }).click();
    await page.waitForURL((url) => url.pathname === new URL(run).pathname);
  });

  it("rolls back with the keyboard alone", async () => {
    const button = page.getByRole("button", { name: "Roll back…" });
    await button.waitFor({ timeout: RUN_MS });
    await button.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.getByRole("button", { name: "Roll back (rehearsal)" }).press("Enter");
    await page.waitForURL((url) => url.pathname.startsWith("/runs/") && url.pathname !== badRun);
    await page.getByText(/^(Succeeded|Rolled back)$/).first().waitFor({ timeout: RUN_MS });
  });

  stateTests(scene);
  itemTests(scene);
  toldTests(scene);

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
    await page.getByRole("link", { name: "Users", exact: true }).click();
    await page.getByRole("button", { name: "New user" }).click();
    await page.getByLabel("Name").fill("Mira Okafor");
    await page.getByLabel("Address").fill("mira@example.org");
    await page.getByLabel("First password").fill("a long enough password");
    await page.getByLabel("Role").selectOption("viewer");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("link", { name: "Mira Okafor" }).click();
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByText("No.", { exact: true }).waitFor();
    await page.getByLabel("Permission", { exact: true }).fill("deployment:definition:read");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByText("Yes.", { exact: true }).waitFor();
    await page.getByRole("region", { name: "Why may they?" }).getByRole("listitem").filter({ hasText: "viewer" }).first().waitFor();
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

  roleTests(scene);

  it("opens what is pasted, shows the keys of a page, and moves through lists without a mouse", async () => {
    await go("/deployments");
    await page.getByRole("row", { name: new RegExp(DEPLOYMENT) }).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/deployments\/D/);
    await page.keyboard.press("Control+k");
    await page.keyboard.type(`${DEPLOYMENT}-network-dev`);
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/dev\/units\/network/);
    await go(changePlan);
    await page.getByText("Ready to decide").waitFor();
    await page.keyboard.press("?");
    await page.getByText("mark the unit as reviewed").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.keyboard.type(">");
    await page.getByRole("option", { name: /^Sign out/ }).waitFor();
    await page.keyboard.press("Escape");
    // A command asks at once for what it needs.
    await page.keyboard.press("Control+k");
    await page.keyboard.type(`>deploy ${DEPLOYMENT}`);
    await page.getByRole("option", { name: new RegExp(`^Deploy ${DEPLOYMENT}…`) }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: new RegExp(`^Deploy ${DEPLOYMENT}`) }).waitFor();
    await page.keyboard.press("Escape");
    await page.waitForURL((url) => !url.searchParams.has("start"));
  });

  phoneTest(scene, () => [goodRun, badRun, changePlan]);

  it("keeps a view of a list under a name", async () => {
    await go("/runs");
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await page.waitForURL(/action=preview/);
    await page.getByRole("button", { name: /^Views/ }).click();
    await page.getByRole("menuitem", { name: "Save this view…" }).click();
    await page.getByLabel("Name").fill("Only plans");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await go("/runs");
    await page.getByRole("button", { name: /^Views/ }).click();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("menuitem", { name: "Only plans" }).click();
    await page.waitForURL(/action=preview/);
  });

  it("seals credentials of a cloud account, and never shows them again", async () => {
    await go("/cloud-accounts");
    await page.getByRole("button", { name: "New cloud account" }).click();
    await page.getByLabel("Name").fill("aws-practice");
    await page.getByLabel("Credentials").fill(`AWS_ACCESS_KEY_ID=AKIAEXAMPLE\nAWS_SECRET_ACCESS_KEY=${CANARY}`);
    await page.getByRole("button", { name: "Seal and keep" }).click();
    await page.getByRole("cell", { name: "aws-practice", exact: true }).waitFor();
    await page.reload();
    await page.getByRole("cell", { name: "aws-practice", exact: true }).waitFor();
    await settled();
    await page.getByRole("button", { name: "Remove aws-practice" }).click();
    await page.getByLabel("Type aws-practice to confirm").fill("aws-practice");
    await page.getByRole("button", { name: "Remove the account" }).click();
    await page.getByText("No cloud account yet").waitFor();
  });

  it("proves the audit trail", async () => {
    await go("/audit?action=deployments.state.export");
    await page.getByRole("button", { name: "deployments.state.export" }).first().waitFor();
    await go("/audit?action=nothing.like.this");
    await page.getByRole("button", { name: "Clear the filter" }).click();
    await page.getByRole("button", { name: "Prove the chain" }).click();
    await page.getByText("Intact.").waitFor();
  });

  it("shows how the installation is, and how the console looks to whoever uses it", async () => {
    await go("/settings/system");
    await page.getByRole("list", { name: "System check" }).getByText("Tenants apart").waitFor();
    await page.getByRole("region", { name: "Runners" }).getByText("Places on this server").waitFor();
    await page.getByRole("region", { name: "Database" }).getByText("Connections").waitFor();
    await go("/settings/profile");
    await page.getByRole("group", { name: "Rows" }).getByRole("button", { name: "Compact" }).click();
    await page.waitForFunction(() => document.documentElement.dataset["density"] === "compact");
    await page.getByRole("group", { name: "Rows" }).getByRole("button", { name: "Default" }).click();
  });

  violationTest(scene, () => ({ run: goodRun, "run-failed": badRun, plan, "plan-change": changePlan }));

  sessionTests(scene);

  it("asked nothing of any other host and broke no policy", () => {
    expect(watch.problems).toEqual([]);
  });
});

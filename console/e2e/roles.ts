/** What each built-in role sees, which acts it has, and that the server refuses what the page says is off. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";

import type { Scene } from "./scene";
import { signIn, violations } from "./support";

/** Whoever runs the installation has all the other tests. */
const ROLES = ["viewer", "read_only", "user", "operator", "developer", "admin", "tenant_admin"];
const ENTRIES = [
  ["Deployments", "deployment:definition:read"],
  ["Approvals", "approval:request:read"],
  ["CMDB", "cmdb:read"],
  ["Components", "component:definition:read"],
  ["Users", "users:read"],
  ["Roles", "rbac:role:read"],
  ["Service accounts", "users:key:read"],
  ["Cloud accounts", "cloud:account:read"],
  ["Audit", "audit:log:read"],
  ["System", "system:setting:read"],
] as const;
/** An act, the page that has it, what it needs, and the request behind it. */
const ACTS = [
  ["Deploy…", "environment", "stack:instance:deploy", "deploy"],
  ["Plan…", "environment", "component:preview", "preview"],
  ["Destroy…", "environment", "stack:instance:destroy", "destroy"],
  ["Import…", "/cmdb", "cmdb:item:import", null],
  ["New tenant", "/tenants", "tenant:definition:create", null],
  ["New user", "/users", "users:account:create", null],
  ["New role", "/roles", "rbac:role:manage", null],
  ["New cloud account", "/cloud-accounts", "cloud:account:manage", null],
  ["Export CSV", "/audit", "audit:log:export", null],
] as const;

/** The same request without the page: what is off there is refused here. */
async function refused(page: Page, deployment: string, act: string): Promise<number> {
  return page.evaluate(
    async ([id, name]) => {
      const headers = { "content-type": "application/json", "x-nimbus-csrf": localStorage.getItem("nimbus.csrf") ?? "" };
      const body = JSON.stringify({ environment: "dev", rehearsal: true });
      return (await fetch(`/api/v1/deployments/${id}/${name}`, { method: "POST", headers, body })).status;
    },
    [deployment, act] as const,
  );
}

export function roleTests(scene: Scene): void {
  it.each(ROLES)("%s: sees what it may use, is told what every other act needs, and is refused by the server as well", async (role) => {
    const person = await scene.api.person(role);
    const other = await scene.browser.newContext({ viewport: { width: 1280, height: 800 } });
    const page = await other.newPage();
    page.setDefaultTimeout(45_000);
    await signIn(page, scene.site, person);
    const me = (await page.evaluate(async () => (await fetch("/api/v1/auth/me")).json())) as { permissions: string[] };
    const held = new Set(me.permissions);
    for (const [entry, needed] of ENTRIES) {
      expect([entry, await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: entry, exact: true }).count()]).toEqual([entry, held.has(needed) ? 1 : 0]);
    }
    let at = "";
    for (const [act, place, needed, request] of ACTS) {
      const path = place === "environment" ? scene.environment : place;
      const shown = ENTRIES.find(([entry]) => path === `/${entry.toLowerCase().replace(" ", "-")}`);
      if (shown && !held.has(shown[1])) continue;
      if (at !== path) await page.goto(scene.site.front + path);
      at = path;
      const button = page.getByRole("button", { name: act, exact: true }).first();
      await button.waitFor();
      const off = (await button.getAttribute("aria-disabled")) === "true";
      expect([act, off]).toEqual([act, !held.has(needed)]);
      if (!off) continue;
      expect(await button.getAttribute("title")).toContain(needed);
      if (request) expect([act, await refused(page, scene.deployment, request)]).toEqual([act, 403]);
    }
    expect(await violations(page)).toEqual([]);
    await other.close();
  });
}

/** What holds for every page: nothing breaks WCAG in either theme, and everything fits a phone. */
import { expect, it } from "vitest";

import type { Scene } from "./scene";
import { PICTURES, setTheme, signIn, violations } from "./support";

/** `made` gives the addresses of two runs and a plan, which the tests before have made. */
export function phoneTest(scene: Scene, made: () => string[]): void {
  it("fits a phone: nothing but tables and graphs scrolls sideways, and the decision is there", async () => {
    const { site } = scene;
    const [, , plan = ""] = made();
    const phone = await scene.browser.newContext({ viewport: { width: 320, height: 800 }, reducedMotion: "reduce" });
    const small = await phone.newPage();
    small.setDefaultTimeout(45_000);
    await signIn(small, site);
    for (const path of ["/", "/approvals", ...made(), scene.environment]) {
      await small.goto(site.front + path);
      await small.getByRole("navigation", { name: "Pages" }).waitFor();
      await small.locator(".skeleton").first().waitFor({ state: "detached" });
      const widths = await small.evaluate(() => [document.documentElement.scrollWidth, document.getElementById("main")?.scrollWidth ?? 0]);
      expect([path, ...widths]).toEqual([path, 320, 320]);
      expect(await violations(small)).toEqual([]);
    }
    await small.goto(site.front + plan);
    await small.getByRole("complementary", { name: "Decision" }).getByRole("button").last().scrollIntoViewIfNeeded();
    await phone.close();
  });
}

/** `made` gives the addresses of what the tests before have made, by the names of their pictures. */
export function violationTest(scene: Scene, made: () => Record<string, string>): void {
  it("has no violation of WCAG 2.2 AA on any page in either theme", async () => {
    const { page, environment, deployment } = scene;
    const pages = [
      ["home", "/"],
      ["deployments", "/deployments"],
      ["deployments-none", "/deployments?find=nothing-like-this"],
      ["wizard", "/deployments/new"],
      ["deployment", `/deployments/${deployment}`],
      ["environment", environment],
      ["resources", `${environment}?tab=resources&kind=rehearsal`],
      ["outputs", `${environment}?tab=outputs&kind=rehearsal`],
      ["unit", `${environment}/units/network?kind=rehearsal`],
      ["unit-versions", `${environment}/units/storage?kind=rehearsal&tab=versions`],
      ["unit-repair", `${environment}/units/network?kind=rehearsal&tab=repair`],
      ["runs", "/runs"],
      ["run-missing", "/runs/00000000-0000-0000-0000-000000000000"],
      ["approvals", "/approvals?status=all"],
      ["approvals-none", "/approvals?status=expired"],
      ["units", "/units"],
      ["units-none", "/infrastructure/stacks?find=nothing-like-this"],
      ["cmdb", "/cmdb"],
      ["cmdb-none", "/cmdb?find=nothing-like-this"],
      ["cmdb-compartments", "/cmdb?tab=compartments"],
      ["cmdb-imports", "/cmdb?tab=imports"],
      ["item-missing", "/cmdb/resources/00000000-0000-0000-0000-000000000000"],
      ["tenant-missing", "/deployments?t=nowhere"],
      ["templates", "/templates"],
      ["components", "/components"],
      ["tenants", "/tenants"],
      ["users", "/users"],
      ["groups", "/groups"],
      ["roles", "/roles"],
      ["keys", "/keys"],
      ["cloud-accounts", "/cloud-accounts"],
      ["audit", "/audit"],
      ["profile", "/settings/profile"],
      ["notifications", "/settings/notifications"],
      ["webhooks", "/settings/notifications?tab=webhooks"],
      ["deliveries", "/settings/notifications?tab=deliveries"],
      ["system", "/settings/system"],
      ...Object.entries(made()),
    ] as const;
    const found: string[] = [];
    for (const [name, path] of pages) {
      await page.goto(scene.site.front + path);
      await page.getByRole("main").waitFor();
      await scene.settled();
      for (const theme of ["light", "dark"] as const) {
        await setTheme(page, theme);
        found.push(...(await violations(page)).map((text) => `${path} ${theme}: ${text}`));
        if (PICTURES) await scene.shot(`${name}-${theme}`);
      }
    }
    await setTheme(page, "light");
    expect(found).toEqual([]);
  });
}

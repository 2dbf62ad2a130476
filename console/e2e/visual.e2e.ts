/**
 * Pictures of pages with fixed content, a fixed clock and the console's own fonts, compared with those that are kept. A few
 * pixels may differ between machines: edges of letters, not shapes. `NIMBUS_E2E_BLESS=1` takes them anew.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { BenchServer } from "../bench/server.mjs";
import { SHOTS, noBrowser, openBrowser, setTheme, tellSkip } from "./support";

const KEPT = join(import.meta.dirname, "pictures");
const REPO = join(import.meta.dirname, "../..");
/** The part of all pixels that may differ, and by how much a channel may before it does. */
const MOST = 0.004;
const CHANNEL = 40;
const NOW = "2026-01-01T10:02:10Z";
const PAGES: [string, string, string][] = [
  ["home", "/", "h1"],
  ["deployments", "/deployments", ".trow"],
  ["runs", "/runs", ".trow"],
  ["run-32", "/runs/run-32-960", ".nd"],
  ["run-64", "/runs/run-64-3012", ".dot-node"],
  ["run-failed", "/runs/failed-8", ".cause"],
  ["plan", "/plans/plan-8?unit=database", ".unit-diff .prop"],
  ["units", "/units", ".trow"],
  ["cmdb", "/cmdb", ".trow"],
  ["item", "/cmdb/resources/i1?tab=relationships", ".nd.item"],
  ["notifications", "/settings/notifications", ".trow"],
  ["webhooks", "/settings/notifications?tab=webhooks", ".trow"],
  ["not-there", "/deployments?t=nowhere", ".state"],
  ["login", "/login", "h1"],
];

const built = existsSync(join(REPO, "target/console/index.html"));
const missing = noBrowser() ?? (built ? null : "no built console");
if (missing) tellSkip(missing, "console: pictures");

describe.skipIf(missing !== null)("pictures", () => {
  const server = new BenchServer(REPO, NOW);
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    await server.start();
    browser = await openBrowser();
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", timezoneId: "UTC", locale: "en-GB" });
    await context.addInitScript(() => localStorage.setItem("nimbus.csrf", "picture"));
    page = await context.newPage();
    await page.clock.setFixedTime(NOW);
    mkdirSync(KEPT, { recursive: true });
    mkdirSync(SHOTS, { recursive: true });
  });

  afterAll(async () => {
    await browser?.close();
    server.stop();
  });

  for (const [name, path, there] of PAGES) {
    it(`${name} looks as it did, in both themes`, async () => {
      await page.goto(server.address + path);
      await page.locator(there).first().waitFor();
      await page.locator(".skeleton").first().waitFor({ state: "detached" });
      await page.evaluate(() => document.fonts.ready);
      for (const theme of ["light", "dark"] as const) {
        await setTheme(page, theme);
        const taken = await page.screenshot({ animations: "disabled" });
        const file = join(KEPT, `${name}-${theme}.png`);
        if (process.env["NIMBUS_E2E_BLESS"]) {
          writeFileSync(file, taken);
          continue;
        }
        const differing = await differ(page, readFileSync(file), taken);
        if (differing > MOST) writeFileSync(join(SHOTS, `${name}-${theme}-differs.png`), taken);
        expect([name, theme, differing <= MOST ? "same" : `${(differing * 100).toFixed(2)} % of all pixels differ, see target/console-shots`]).toEqual([name, theme, "same"]);
      }
    });
  }
});

/** The part of all pixels that differ; decoded by the browser, which has everything for it. */
async function differ(page: Page, kept: Buffer, taken: Buffer): Promise<number> {
  return page.evaluate(
    async ([one, other, channel]) => {
      const pixels = async (base64: string) => {
        const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
        const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
        const canvas = new OffscreenCanvas(image.width, image.height);
        const drawing = canvas.getContext("2d");
        drawing?.drawImage(image, 0, 0);
        return drawing?.getImageData(0, 0, image.width, image.height);
      };
      const [a, b] = [await pixels(one), await pixels(other)];
      if (!a || !b || a.width !== b.width || a.height !== b.height) return 1;
      let count = 0;
      for (let at = 0; at < a.data.length; at += 4) {
        const far = [0, 1, 2].some((index) => Math.abs((a.data[at + index] ?? 0) - (b.data[at + index] ?? 0)) > channel);
        if (far) count += 1;
      }
      return count / (a.data.length / 4);
    },
    [kept.toString("base64"), taken.toString("base64"), CHANNEL] as const,
  );
}

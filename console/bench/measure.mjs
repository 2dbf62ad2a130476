/**
 * `cargo xtask bench console`: the budgets of the console, measured in a real Chromium from what the browser itself records:
 * bytes of responses, navigation and event timing, frames, heap. Prints a table; `--write FOLDER` keeps it there as `console.md`, and
 * every figure in `console.json`.
 */
import { existsSync, writeFileSync } from "node:fs";
import { cpus, loadavg, platform } from "node:os";
import { join } from "node:path";

import { chromium } from "playwright-core";

import { BenchServer } from "./server.mjs";

const REPO = join(import.meta.dirname, "../..");
const BROWSER = [process.env["NIMBUS_TEST_CHROMIUM"] ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
if (!BROWSER) throw new Error("there is no Chromium; install one, or name it in NIMBUS_TEST_CHROMIUM");
const SLOWER = 4;
/** 10 Mbit/s and 40 ms. */
const NETWORK = { offline: false, downloadThroughput: (10 * 1e6) / 8, uploadThroughput: (10 * 1e6) / 8, latency: 40 };
const SECONDS = Number(process.env["NIMBUS_BENCH_SECONDS"] ?? 10);

const rows = [];
function figure(what, value, budget, unit) {
  rows.push({ what, value, budget, unit, kept: value <= budget });
  console.log(`${value <= budget ? "ok  " : "OVER"} ${what}: ${shown(value, unit)} (budget ${shown(budget, unit)})`);
}
const shown = (value, unit) => `${unit === "kB" || unit === "MB" ? value.toFixed(1) : Math.round(value)} ${unit}`;
const percentile = (values, part) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;

const server = new BenchServer(REPO);
await server.start();
const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info", "--js-flags=--expose-gc"] });

async function open({ slow = true, network = false } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await context.addInitScript(() => localStorage.setItem("nimbus.csrf", "bench"));
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  if (slow) await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
  if (network) {
    await session.send("Network.enable");
    await session.send("Network.emulateNetworkConditions", NETWORK);
  }
  return { context, page };
}

/** Milliseconds since the navigation until something is there and the main thread is free again. */
async function ready(page, selector) {
  await page.waitForSelector(selector);
  return page.evaluate(() => new Promise((resolve) => requestIdleCallback(() => resolve(performance.now()), { timeout: 3000 })));
}

/** Frames for as long as `act` takes: milliseconds between each two. */
async function frames(page, act) {
  await page.evaluate(() => {
    window.benchFrames = [];
    let last = performance.now();
    const next = (now) => {
      window.benchFrames.push(now - last);
      last = now;
      window.benchFrame = requestAnimationFrame(next);
    };
    window.benchFrame = requestAnimationFrame(next);
  });
  await act();
  return page.evaluate(() => {
    cancelAnimationFrame(window.benchFrame);
    return window.benchFrames.slice(2);
  });
}

const bytes = (sent, kind) => sent.filter((one) => one.kind === kind).reduce((sum, one) => sum + one.bytes, 0) / 1000;

// Bytes of the first page, then what the run page adds.
{
  const { context, page } = await open({ slow: false });
  await page.goto(server.address);
  await ready(page, "h1");
  figure("first load of Home, JavaScript", bytes(server.sent, "js"), 190, "kB");
  figure("first load of Home, style sheets", bytes(server.sent, "css"), 25, "kB");
  figure("first load of Home, fonts", bytes(server.sent, "woff2"), 90, "kB");
  server.sent = [];
  await page.evaluate(() => window.history.pushState({}, "", "/runs/run-64-3012"));
  await page.reload();
  await ready(page, ".dag-canvas");
  figure("run page, JavaScript beyond Home", bytes(server.sent, "js"), 80, "kB");
  figure("embedded in the binary", server.embedded() / 1e6, 6, "MB");
  await context.close();
}

// Until one can use it, four times slower, over a slow network; then once more with everything cached.
{
  const { context, page } = await open({ network: true });
  await page.goto(server.address);
  figure("Home, time to interactive", await ready(page, "h1"), 1500, "ms");
  await page.reload();
  figure("Home again, time to interactive", await ready(page, "h1"), 600, "ms");
  await context.close();
  const other = await open({ network: true });
  await other.page.goto(`${server.address}/runs/run-64-3012`);
  figure("run of 64 units, time to interactive", await ready(other.page, ".dag-canvas"), 1800, "ms");
  await other.context.close();
}

for (const [units, resources, budget] of [[64, 3012, 50], [300, 30000, 300]]) {
  const { context, page } = await open();
  await page.goto(`${server.address}/runs/run-${units}-${resources}`);
  await ready(page, ".dag-canvas");
  const mount = await page.evaluate(() => performance.getEntriesByName("nimbus.graph")[0]?.duration ?? Infinity);
  figure(`graph of ${units} units, mounted`, mount, budget, "ms");
  await page.evaluate(() => {
    window.benchEvents = [];
    new PerformanceObserver((list) => window.benchEvents.push(...list.getEntries().filter((entry) => entry.interactionId).map((entry) => entry.duration))).observe({ type: "event", durationThreshold: 16, buffered: true });
  });
  const cells = page.locator(".strip .cells button, .strip button");
  const count = await cells.count();
  for (let index = 0; index < 24; index += 1) await cells.nth((index * 7) % count).click();
  for (const name of ["Diff", "Why and needs", "Resources"]) await page.getByRole("tab", { name: new RegExp(`^${name}`) }).first().click();
  for (const key of ["j", "j", "k", "j"]) await page.keyboard.press(key);
  const inputs = await page.evaluate(() => window.benchEvents);
  figure(`${units} × ${resources.toLocaleString("en")}: interaction to next paint, p75`, percentile(inputs.length > 0 ? inputs : [16], 0.75), 100, "ms");
  server.told = [];
  // When how much was on screen: read every frame, in the clock that server and page share.
  await page.evaluate(() => {
    window.benchSeen = [];
    const look = () => {
      const text = document.querySelectorAll(".tot dd")[1]?.firstChild?.textContent ?? "0";
      window.benchSeen.push([Date.now(), Number(text.replace(/\D/g, ""))]);
      requestAnimationFrame(look);
    };
    look();
  });
  const base = await page.evaluate(() => Number((document.querySelectorAll(".tot dd")[1]?.firstChild?.textContent ?? "0").replace(/\D/g, "")));
  const deltas = await frames(page, () => server.play(1000, SECONDS));
  figure(`${units} × ${resources.toLocaleString("en")}: 1,000 events a second, frame p95`, percentile(deltas, 0.95), 34, "ms");
  // What was told last is on its way when the last word was said.
  await page.waitForFunction((all) => window.benchSeen.at(-1)[1] >= all, base + server.told.at(-1).done, { timeout: 5000 }).catch(() => undefined);
  const seen = await page.evaluate(() => window.benchSeen);
  const lags = server.told.map(({ at, done }) => (seen.find(([, count]) => count >= base + done)?.[0] ?? at + 5000) - at);
  figure(`${units} × ${resources.toLocaleString("en")}: screen behind server, p95`, percentile(lags, 0.95), 300, "ms");
  if (units === 64) {
    const heap = async () => page.evaluate(() => { globalThis.gc?.(); return performance.memory.usedJSHeapSize / 1e6; });
    const before = await heap();
    await server.play(3000, SECONDS);
    const after = await heap();
    figure("heap after a busy run", after, 250, "MB");
    console.log(`     heap grew from ${before.toFixed(1)} MB to ${after.toFixed(1)} MB over ${SECONDS * 3000} events`);
  }
  await context.close();
}

// A list of ten thousand.
{
  const { context, page } = await open();
  await page.goto(server.address);
  await ready(page, "h1");
  await page.getByRole("link", { name: "Deployments", exact: true }).first().hover();
  await page.evaluate(() => {
    window.benchStart = 0;
    document.addEventListener("click", () => { window.benchStart = performance.now(); }, { capture: true, once: true });
    new MutationObserver((_, observer) => {
      if (!document.querySelector(".trow")) return;
      observer.disconnect();
      requestAnimationFrame(() => { window.benchRows = performance.now() - window.benchStart; });
    }).observe(document.body, { childList: true, subtree: true });
  });
  await page.getByRole("link", { name: "Deployments", exact: true }).first().click();
  await page.waitForFunction(() => window.benchRows > 0);
  figure("list of 10,000, from the click to its first rows", await page.evaluate(() => window.benchRows), 150, "ms");
  const table = page.getByRole("table").first();
  const scrolled = await frames(page, async () => {
    const box = await table.boundingBox();
    await page.mouse.move(box.x + 200, box.y + 200);
    for (let step = 0; step < 40; step += 1) await page.mouse.wheel(0, 900);
  });
  figure("list of 10,000, scroll, frame p95", percentile(scrolled, 0.95), 34, "ms");
  figure("list of 10,000, rows drawn at once", await page.locator(".trow").count(), 60, "rows");
  await context.close();
}

const version = browser.version();
await browser.close();
server.stop();

const over = rows.filter((row) => !row.kept);
const machine = `${cpus()[0]?.model.trim() ?? "?"}, ${cpus().length} cores, ${platform()}`;
const load = Number(loadavg()[0].toFixed(1));
const lines = [
  "# The console's budgets",
  "",
  "`cargo xtask bench console --write` wrote this page; `console.json` has every figure. A real Chromium, and what it records itself:",
  "times and frames with a processor four times slower than it is, the first loads over 10 Mbit/s with 40 ms. The console is the",
  "one that the binary carries, the server is the bench's own, with made-up content of the API's shapes.",
  "",
  `${machine}; load ${load} when it ended, so that times are ${load > cpus().length ? "of a machine that did other work too" : "of a machine that did little else"}.`,
  "",
  "| what | measured | budget | |",
  "|---|---|---|---|",
  ...rows.map((row) => `| ${row.what} | ${shown(row.value, row.unit)} | ${shown(row.budget, row.unit)} | ${row.kept ? "kept" : "**over**"} |`),
  "",
];
console.log(lines.slice(8).join("\n"));
const at = process.argv.indexOf("--write");
if (at > 0) {
  const folder = process.argv[at + 1];
  writeFileSync(join(folder, "console.md"), lines.join("\n"));
  writeFileSync(join(folder, "console.json"), `${JSON.stringify({ bench: "console", machine, load, browser: version, figures: rows }, null, 2)}\n`);
}
if (over.length > 0) {
  console.error(`${over.length} of ${rows.length} budgets are not kept`);
  process.exitCode = 1;
}

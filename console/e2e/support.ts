/** A server of the real binary with a rehearsed deployment in it, a real browser, and what every page must keep to. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromium } from "playwright-core";
import type { Browser, BrowserContext, Page } from "playwright-core";

const REPO = join(import.meta.dirname, "../..");
const BINARY = process.env["NIMBUS_E2E_BINARY"] ?? join(REPO, "target/debug/nimbus");
const BROWSERS = [process.env["NIMBUS_TEST_CHROMIUM"] ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export const ADMIN = { name: "Ada Lindqvist", email: "ada@example.org", password: "correct horse battery staple" };
/** Where screenshots go. */
export const SHOTS = join(REPO, "target/console-shots");

/** Whether every page is taken in both themes; it takes a while. */
export const PICTURES = Boolean(process.env["NIMBUS_E2E_SHOTS"]);

export function noBrowser(): string | null {
  return BROWSERS.some((path) => path && existsSync(path)) ? null : "no Chromium";
}

/** Why browser tests cannot run here; nothing if they can. */
export function lacking(): string | null {
  if (noBrowser()) return noBrowser();
  if (!existsSync(BINARY)) return "no nimbus binary";
  if (!process.env["NIMBUS_TEST_POSTGRES"]) return "no PostgreSQL";
  if (!process.env["NIMBUS_TEST_NODE_SDK"]) return "no node SDK";
  return null;
}

/** A skipped test is counted by the summary of `cargo xtask test`. */
export function tellSkip(reason: string, test: string): void {
  console.warn(`SKIPPED(${reason}): ${test}`);
  const file = process.env["NIMBUS_TEST_SKIPS"];
  if (file) appendFileSync(file, `SKIPPED(${reason}): ${test}\n`);
}

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

export class Site {
  readonly folder = mkdtempSync(join(tmpdir(), "nimbus-e2e-"));
  address = "";
  /** Where browsers go: the server itself, unless the sources are served by Vite. */
  get front(): string {
    return process.env["NIMBUS_E2E_FRONT"] ?? this.address;
  }

  setupLink = "";
  #process: ChildProcess | null = null;
  #port = 0;
  #text = "";

  async start(): Promise<void> {
    this.#port ||= Number(process.env["NIMBUS_E2E_PORT"] ?? 0) || (await freePort());
    const child = spawn(BINARY, ["up", "--data-dir", this.folder, "--listen", `127.0.0.1:${this.#port}`], {
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: this.folder,
        NIMBUS_DB_BINARIES: process.env["NIMBUS_TEST_POSTGRES"] ?? "",
        NIMBUS_RUNS_NODE_MODULES: join(process.env["NIMBUS_TEST_NODE_SDK"] ?? "", "node_modules"),
        NIMBUS_ENGINE_SANDBOX: "off",
        NIMBUS_RATE_LIMITING_ENABLED: "false",
      },
    });
    this.#process = child;
    this.#text = "";
    this.address = "";
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`the server did not start:\n${this.#text}`)), 90_000);
      const hear = (chunk: Buffer) => {
        this.#text += chunk.toString();
        if (this.address) return;
        const ready = /ready at (\S+)/.exec(this.#text);
        if (ready?.[1] && this.#text.includes("Data is in")) {
          this.address = ready[1];
          this.setupLink = /at (\S+token=\S+)/.exec(this.#text)?.[1] ?? "";
          clearTimeout(timer);
          resolve();
        }
      };
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}:\n${this.#text}`)));
    });
  }

  /** Ends the server; its data stays for another start. */
  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (!child || child.exitCode !== null) return;
    await new Promise<void>((resolve) => {
      child.once("exit", () => resolve());
      child.kill("SIGTERM");
    });
  }

  async end(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function openBrowser(): Promise<Browser> {
  const executablePath = BROWSERS.find((path) => path && existsSync(path)) ?? "";
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--font-render-hinting=none"] });
}

/** What went wrong in a page without anybody looking: policy violations, errors, requests to elsewhere. */
export class Watch {
  readonly problems: string[] = [];

  constructor(
    context: BrowserContext,
    address: string,
    private readonly canary: string,
  ) {
    context.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(address) && !url.startsWith("data:") && !url.startsWith("blob:")) {
        this.problems.push(`a request to elsewhere: ${url}`);
      }
    });
    context.on("console", (message) => {
      const text = message.text();
      if (/Content.Security.Policy|violates/i.test(text)) this.problems.push(text);
    });
    context.on("response", (response) => {
      if (!response.url().includes("/api/")) return;
      response.text().then(
        (text) => {
          if (text.includes(canary)) this.problems.push(`a secret in the answer of ${response.url()}`);
        },
        // A page that was left takes the bodies of its answers along.
        () => undefined,
      );
    });
    context.on("weberror", (error) => this.problems.push(String(error.error())));
  }

  /** Looks for the secret in what a page shows, where it is, and in what it keeps. */
  async look(page: Page): Promise<void> {
    const found = await page.evaluate((canary) => {
      const kept = [...Object.values({ ...localStorage }), ...Object.values({ ...sessionStorage })].join(" ");
      const places: [string, string][] = [["page", document.documentElement.outerHTML], ["address", location.href], ["storage", kept], ["cookie", document.cookie]];
      return places.filter(([, text]) => text.includes(canary)).map(([name]) => name);
    }, this.canary);
    for (const place of found) this.problems.push(`a secret in the ${place} of ${page.url()}`);
  }
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResult {
  violations: { id: string; help: string; nodes: { target: string[]; failureSummary?: string }[] }[];
}

/** Every rule of WCAG 2.0 to 2.2, A and AA; what is broken, in words. */
export async function violations(page: Page): Promise<string[]> {
  // The page's own policy allows no script but its own: this one goes in from outside.
  await page.evaluate(axeSource);
  const result = (await page.evaluate(
    (tags) => {
      const scope = window as unknown as { axe: { run: (root: Document, options: object) => Promise<unknown> } };
      return scope.axe.run(document, { runOnly: { type: "tag", values: tags } });
    },
    ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
  )) as AxeResult;
  return result.violations.flatMap((violation) =>
    violation.nodes.slice(0, 4).map((node) => `${violation.id}: ${violation.help} at ${node.target.join(" ")} ${node.failureSummary ?? ""}`),
  );
}

export async function setTheme(page: Page, theme: "light" | "dark"): Promise<void> {
  await page.evaluate((value) => {
    localStorage.setItem("nimbus.theme", value);
    document.documentElement.dataset["theme"] = value;
  }, theme);
}

/** Signs in by the form, as a person does. */
export async function signIn(page: Page, site: Site, who: { email: string; password: string; tenant?: string } = ADMIN): Promise<void> {
  await page.goto(`${site.front}/login`);
  await page.getByLabel("Email").fill(who.email);
  await page.getByLabel("Password").fill(who.password);
  await page.getByLabel("Tenant").fill(who.tenant ?? "");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** What the parts of the browser tests share: a server, a browser, a page, and what they made so far. */
import type { Browser, BrowserContext, Page } from "playwright-core";

import type { Api } from "./content";
import type { Site, Watch } from "./support";

/** A plan or a run of eight programs takes a quarter of a minute, and many minutes on a machine that builds meanwhile. */
export const RUN_MS = 900_000;

export interface Scene {
  readonly site: Site;
  readonly api: Api;
  browser: Browser;
  context: BrowserContext;
  page: Page;
  watch: Watch;
  readonly deployment: string;
  /** The address of its environment. */
  readonly environment: string;
  shot: (name: string) => Promise<unknown>;
  /** Opens a page and waits for the frame around it. */
  go: (path: string) => Promise<void>;
  /** What is on screen is what there is: nothing is being read any more. */
  settled: () => Promise<void>;
}

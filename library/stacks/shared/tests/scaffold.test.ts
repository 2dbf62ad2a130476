import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, it } from "vitest";
import { STACKS, TEMPLATES } from "../testing/template";

const NAME = "demo-widgets";
const VALUES: Record<string, string> = {
  STACK_NAME: NAME,
  STACK_DESCRIPTION: "Widgets of the demonstration",
  DATE: "2026-01-01",
};

const root = mkdtempSync(join(tmpdir(), "scaffold-"));
afterAll(() => rmSync(root, { recursive: true }));

/** Where a file of the scaffold belongs in a platform; documented in the library's guide. */
function destination(file: string): string {
  const name = basename(file, ".template");
  if (file === "template.yaml.template") {
    return `tools/templates/config/${NAME}.yaml`;
  }
  if (file.startsWith("tests/")) {
    return `stacks/${NAME}/tests/${NAME}.test.ts`;
  }
  return `stacks/${NAME}/src/${name}`;
}

function render(from: string, to: string): void {
  const text = readFileSync(from, "utf8").replace(
    /\{\{([A-Z_]+)\}\}/g,
    (whole, name: string) => VALUES[name] ?? whole,
  );
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, text);
}

it("makes a component that passes its own tests at once", async () => {
  for (const file of [
    "package.json",
    "tsconfig.base.json",
    "tsconfig.json",
    "vitest.config.mjs",
    "shared",
  ]) {
    cpSync(join(STACKS, file), join(root, "stacks", file), {
      recursive: true,
      filter: (source) => !source.startsWith(join(STACKS, "shared/tests")),
    });
  }
  symlinkSync(join(STACKS, "node_modules"), join(root, "stacks/node_modules"));
  const scaffold = join(TEMPLATES, "stack");
  const files = readdirSync(scaffold, { recursive: true, encoding: "utf8" });
  for (const file of files.filter((name) => name.endsWith(".template"))) {
    render(join(scaffold, file), join(root, destination(file)));
  }
  for (const file of readdirSync(join(TEMPLATES, "docs"))) {
    render(
      join(TEMPLATES, "docs", file),
      join(root, `stacks/${NAME}/docs`, basename(file, ".template")),
    );
  }
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(STACKS, "node_modules/vitest/vitest.mjs"), "run", NAME, "-u"],
    { cwd: join(root, "stacks"), env: { ...process.env, NO_COLOR: "1" } },
  );
  expect(stdout).toMatch(/Tests +10 passed \(10\)/);
  expect(readFileSync(join(root, `stacks/${NAME}/docs/Reference.md`), "utf8")).toContain(
    "| `aws:s3/bucket:Bucket` | 1 | 1 | 1 |",
  );
}, 60_000);

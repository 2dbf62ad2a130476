/**
 * Builds the package `@cloud/shared` for programs outside of this workspace: compiled, with types.
 * Inside of the workspace nothing is built; programs import the sources.
 *
 *     node shared/pack.mjs DIRECTORY
 *
 * leaves the package in DIRECTORY, ready for `npm pack` or `npm publish`.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";

const shared = import.meta.dirname;
const target = resolve(process.argv[2] ?? join(shared, "../dist"));

/** What is no TypeScript and yet part of a component: it runs in AWS as it is. */
const FUNCTIONS = ["components/postgres/credentials-function"];

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
execFileSync(
  process.execPath,
  [compiler, "-p", join(shared, "tsconfig.package.json"), "--outDir", target],
  { stdio: "inherit" },
);
for (const folder of FUNCTIONS) {
  mkdirSync(dirname(join(target, folder)), { recursive: true });
  cpSync(join(shared, folder), join(target, folder), { recursive: true });
}

const { name, version, description, dependencies } = JSON.parse(
  readFileSync(join(shared, "package.json"), "utf8"),
);
const manifest = {
  name,
  version,
  description,
  main: "./index.js",
  types: "./index.d.ts",
  exports: {
    ".": { types: "./index.d.ts", default: "./index.js" },
    "./package.json": "./package.json",
  },
  files: ["**/*.js", "**/*.d.ts", ...FUNCTIONS.map((folder) => `${folder}/**`)],
  engines: { node: ">=20" },
  // The program's own copy: two of them do not know each other's resources.
  peerDependencies: dependencies,
};
writeFileSync(join(target, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);

/**
 * After the build: every file in its two compressed forms, because the server holds nothing else, and the budgets of
 * the first load. Files that are the same stay untouched, so that the Rust build has nothing to do either; the stamp
 * is written last, and the Rust build takes nothing without it.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const target = join(dirname(fileURLToPath(import.meta.url)), "../../target");
const [built, packed] = [join(target, "console"), join(target, "console-packed")];
const STAMP = join(packed, ".built");

/** Compressed sizes of what the first page loads, in kB. */
const BUDGETS = { js: 190, css: 25, woff2: 100 };

function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesBelow(path) : [path];
  });
}

function writeIfNew(path, bytes) {
  if (existsSync(path) && readFileSync(path).equals(bytes)) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
}

const digest = createHash("sha256");
const sizes = {};
const kept = new Set([STAMP]);
for (const file of filesBelow(built).sort()) {
  const bytes = readFileSync(file);
  const name = join(packed, relative(built, file));
  const gzip = gzipSync(bytes, { level: 9 });
  writeIfNew(`${name}.gz`, gzip);
  writeIfNew(`${name}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
  kept.add(`${name}.gz`).add(`${name}.br`);
  digest.update(relative(built, file)).update(bytes);
  sizes[relative(built, file)] = gzip.length;
}
for (const file of filesBelow(packed)) if (!kept.has(file)) rmSync(file);

const page = readFileSync(join(built, "index.html"), "utf8");
const entry = new Set([...page.matchAll(/"\/(assets\/[^"]+)"/g)].map((match) => match[1]));
const first = { js: 0, css: 0, woff2: 0 };
for (const [file, size] of Object.entries(sizes)) {
  const kind = file.split(".").at(-1);
  if (kind in first && (kind === "woff2" || entry.has(file))) first[kind] += size;
}
const over = Object.keys(BUDGETS).filter((kind) => first[kind] > BUDGETS[kind] * 1000);
const told = Object.entries(first).map(([kind, size]) => `${kind} ${(size / 1000).toFixed(0)} of ${BUDGETS[kind]} kB`);
console.log(`first load, gzip: ${told.join(", ")}`);
if (over.length > 0) {
  console.error(`over budget: ${over.join(", ")}`);
  process.exit(1);
}
writeIfNew(STAMP, Buffer.from(`${digest.digest("hex")}\n`));

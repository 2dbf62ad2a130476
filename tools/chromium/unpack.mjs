/** The browser and its libraries, from the package that has them compressed into this folder. */
import { chmodSync, createReadStream, createWriteStream, rmSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";

const PACKED = "node_modules/@sparticuz/chromium/bin";
for (const name of ["chromium", "al2023.tar", "swiftshader.tar"]) {
  await pipeline(createReadStream(`${PACKED}/${name}.br`), createBrotliDecompress(), createWriteStream(name));
  if (!name.endsWith(".tar")) continue;
  execFileSync("tar", ["xf", name]);
  rmSync(name);
}
chmodSync("chromium", 0o755);
rmSync("node_modules", { recursive: true });

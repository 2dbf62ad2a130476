/** Tests in a real browser against the real binary; one after the other, because they share a server. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: ["*.e2e.ts"],
    fileParallelism: false,
    testTimeout: 1_800_000,
    hookTimeout: 180_000,
    sequence: { concurrent: false },
  },
});

import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["shared/tests/**/*.test.ts", "*/tests/**/*.test.ts"],
    // Files share a process and with it the loaded SDK; the harness starts every run afresh.
    isolate: false,
    maxWorkers: 2,
    // Loading the cloud SDK for the first time takes a few seconds on a busy machine.
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});

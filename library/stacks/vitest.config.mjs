import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["shared/tests/**/*.test.ts", "*/tests/**/*.test.ts"],
    // Files share a process and with it the loaded SDK; the harness starts every run afresh.
    isolate: false,
    maxWorkers: 2,
    // A test of a whole deployment runs dozens of programs, and machines are busy.
    testTimeout: 180_000,
    hookTimeout: 30_000,
  },
});

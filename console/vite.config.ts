/**
 * The console's build. It goes to `target/console` of the repository, from where the Rust build takes it;
 * `npm run dev` serves the sources and passes API requests on to a running `nimbus up`.
 */
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = process.env["NIMBUS_SERVER"] ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../target/console",
    emptyOutDir: true,
    // Everything comes from the server as files: the policy allows no inline data but icons.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
  },
  server: {
    port: 5173,
    proxy: {
      "^/(api|graphql|health|ready|live)": {
        target: server,
        ws: true,
        changeOrigin: true,
        // A server believes cookies only from its own address.
        headers: { origin: server },
      },
    },
  },
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"], environment: "node", testTimeout: 60_000 },
});

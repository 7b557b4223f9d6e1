// Builds the app into the package that serves it. Every file name of assets/ has the hash of its content.
import react from "@vitejs/plugin-react";
import { defaultClientConditions, defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  resolve: { conditions: ["foretell-source", ...defaultClientConditions] }, // the client's sources, not its build
  build: {
    outDir: "../src/foretell/web/build",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
  },
});

// Bundles the page into src/clew/show/web/static: clew.js, clew.css, index.html. `--test` runs test/*.test.ts.
import { build, context } from "esbuild";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.env.CLEW_UI_OUT ?? join(here, "..", "src", "clew", "show", "web", "static");
const shared = { bundle: true, jsx: "automatic", jsxImportSource: "preact", logLevel: "warning", target: "es2020" };

const page = {
  ...shared,
  entryPoints: { clew: join(here, "src", "main.tsx") },
  outdir: out,
  format: "iife", // a plain script also runs from file://, where modules are refused
  charset: "ascii", // inlined into a report, the text must not depend on how the file is decoded
  minify: true,
  legalComments: "none",
};

if (process.argv.includes("--test")) {
  const folder = mkdtempSync(join(tmpdir(), "clew-ui-test-"));
  try {
    const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
    await build({
      ...shared,
      entryPoints: tests.map((name) => join(here, "test", name)),
      outdir: folder,
      outExtension: { ".js": ".mjs" },
      format: "esm",
      platform: "node",
      target: "node18",
    });
    const made = tests.map((name) => join(folder, name.replace(/\.ts$/, ".mjs")));
    process.exitCode = spawnSync(process.execPath, ["--test", ...made], { stdio: "inherit" }).status ?? 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
} else {
  mkdirSync(out, { recursive: true });
  cpSync(join(here, "index.html"), join(out, "index.html"));
  if (process.argv.includes("--watch")) await (await context({ ...page, sourcemap: "inline" })).watch();
  else await build(page);
}

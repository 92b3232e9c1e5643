// Bundles the page into src/clew/web/static: clew.js, clew.css, index.html, licenses.txt.
// `--test` runs test/*.test.ts.
import { build, context } from "esbuild";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.env.CLEW_UI_OUT ?? join(here, "..", "src", "clew", "web", "static");
const shared = { bundle: true, jsx: "automatic", jsxImportSource: "preact", logLevel: "warning", target: "es2020" };

/** Name and licence of every package that ends up in the page. */
async function licenses() {
  const { metafile } = await build({ ...page, write: false, metafile: true, minify: false });
  const found = Object.keys(metafile.inputs).map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  const names = [...new Set(found.filter(Boolean))].sort();
  return names.map((name) => [name, readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8").trim()]);
}

/** For a report, which is the script alone: whose work is in it. */
function credits(used) {
  const lines = used.map(([name, text]) => `${name}: ${/copyright[^\n]*/i.exec(text)?.[0] ?? ""}`);
  return `/*! The MIT License, see licenses.txt of Clew. ${lines.join("; ")} */`.replace(/[^\x20-\x7e]/g, "");
}

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
  else {
    const used = await licenses();
    writeFileSync(join(out, "licenses.txt"), used.map(([name, text]) => `${name}\n\n${text}\n`).join("\n\n"));
    await build({ ...page, banner: { js: credits(used) } });
  }
}

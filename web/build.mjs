// node build.mjs OUT.cpp: bundles src/ and writes the page's files, packed, as a C++ source.
// node build.mjs --tests: bundles the tests into .tests/, for node's own runner.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const kMostPackedBytes = 500 * 1000;
const shared = { bundle: true, format: "esm", target: "es2022", jsx: "automatic", jsxImportSource: "preact", logLevel: "warning" };

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath ?? one.path, one.name));
}

async function buildTests() {
  rmSync(".tests", { recursive: true, force: true });
  const entryPoints = filesBelow("src").filter((file) => file.endsWith(".test.ts"));
  await build({ ...shared, entryPoints, outdir: ".tests", platform: "node", outExtension: { ".js": ".mjs" } });
}

async function buildPage(out) {
  const built = await build({ ...shared, entryPoints: { app: "src/main.tsx", style: "src/style.css" }, outdir: "page", minify: true, write: false, legalComments: "none" });
  const files = [
    { path: "/index.html", type: "text/html; charset=utf-8", bytes: readFileSync("src/index.html") },
    { path: "/icon.svg", type: "image/svg+xml", bytes: readFileSync("src/icon.svg") },
  ];
  for (const file of built.outputFiles) {
    const isScript = file.path.endsWith(".js");
    files.push({ path: isScript ? "/app.js" : "/style.css", type: isScript ? "text/javascript; charset=utf-8" : "text/css; charset=utf-8", bytes: file.contents });
  }
  let total = 0;
  const entries = files.map((file) => {
    const packed = gzipSync(file.bytes, { level: 9 });
    total += packed.length;
    const etag = createHash("sha256").update(file.bytes).digest("hex").slice(0, 16);
    let text = "";
    packed.forEach((byte, at) => (text += (at % 64 === 0 ? '"\n    "' : "") + "\\" + byte.toString(8).padStart(3, "0")));
    return `    {"${file.path}", "${file.type}", "\\"${etag}\\"", std::string_view("${text}", ${packed.length})},\n`;
  });
  if (total > kMostPackedBytes) throw new Error(`the page has ${total} bytes packed, more than ${kMostPackedBytes}`);
  writeFileSync(out, `// Made by web/build.mjs: ${total} bytes.
#include "dashboard/page.h"

namespace berth::dashboard {
namespace {
const PageFile kFiles[] = {
${entries.join("")}};
}  // namespace
std::span<const PageFile> page_files() { return kFiles; }
}  // namespace berth::dashboard
`);
}

if (process.argv[2] === "--tests") await buildTests();
else await buildPage(process.argv[2]);

// Bundles the lab into one HTML file. Usage: build.mjs DIRECTORY WORKER WASM OUTPUT
//   DIRECTORY holds node_modules; WORKER is the bundled script of the engine; WASM the engine.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = resolve(here, "../../../..");
const [directory, worker, wasm, output] = process.argv.slice(2).map((path) => resolve(path));
const esbuild = createRequire(join(directory, "package.json"))("esbuild");

const kReport = join(root, "src/inspect/report/page");
// The parts of the HTML report that the lab uses, and what it takes from them.
const kPieces = ["base", "chart", "map", "tiles", "save", "tokens"];
const kTaken = `state, update, subscribe, element, harmless, isNumber, shorter, grouped, percent, points, plainTable, themeButton,
  color, headTiles, markSelected, thumbnail, mapCanvas, weightMap, legend, liveChart, report, themeColor, kFont, pictureOf, saveButtons, word`;

// Returns those parts, after the program's table of characters that they escape.
function report() {
  const [, hidden] = /kHidden\[\] = \{([^}]*)\}/.exec(readFileSync(join(root, "src/train/files/text/text.cpp"), "utf8"));
  const pieces = kPieces.map((name) => readFileSync(join(kReport, `${name}.js`), "utf8"));
  return [`const kHiddenPoints = [${hidden}];`, ...pieces, `export { ${kTaken} };`].join("\n");
}

const configs = () => {
  const folder = join(root, "configs");
  const files = [...readdirSync(folder), "data/plural.tsv"].filter((name) => /\.(yaml|tsv)$/.test(name));
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
};

// Gives the modules "lab:report", parts of the HTML report, and "lab:configs", the files of configs/ by name.
const virtual = {
  name: "virtual",
  setup(build) {
    build.onResolve({ filter: /^lab:/ }, ({ path }) => ({ path, namespace: "lab" }));
    build.onLoad({ filter: /report$/, namespace: "lab" }, () => ({ contents: report() }));
    build.onLoad({ filter: /configs$/, namespace: "lab" }, () => ({ contents: JSON.stringify(configs()), loader: "json" }));
  },
};

// Returns a script that does not end its <script> element.
const escaped = (text) => text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");

// Returns a script with its imports in one text.
async function bundle(entry) {
  const result = await esbuild.build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    platform: "browser",
    nodePaths: [join(directory, "node_modules")],
    plugins: [virtual],
    logLevel: "warning",
  });
  return result.outputFiles[0].text;
}

async function styles() {
  const sheets = [join(kReport, "page.css"), join(here, "lab.css")].map((path) => readFileSync(path, "utf8"));
  return (await esbuild.transform(sheets.join("\n"), { loader: "css", minify: true })).code.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = escaped(await bundle(join(here, "main.js")));
const style = await styles();
const parts = {
  style,
  script,
  worker: escaped(readFileSync(worker, "utf8")),
  wasm: gzipSync(readFileSync(wasm), { level: 9 }).toString("base64"),
  policy: [
    "default-src 'none'",
    `script-src ${hash(script)} 'wasm-unsafe-eval'`,
    `style-src ${hash(style)}`,
    "worker-src blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; "),
};
const page = readFileSync(join(here, "page.html"), "utf8").replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
writeFileSync(output, page);
const kilobytes = (text) => `${Math.round(Buffer.byteLength(text) / 1000)} kB`;
console.log(
  `${basename(output)}: ${kilobytes(page)}; script ${kilobytes(script)}, style ${kilobytes(style)}, ` +
    `worker ${kilobytes(parts.worker)}, engine ${kilobytes(parts.wasm)}`,
);

// Bundles the page of mica serve and that of mica report, and writes them as C: node bundle.mjs OUT REPORT_OUT. Run by ./build, in a folder
// that has node_modules, and the report's sources in its subfolder report.
//
// The same sources and lockfile give the same bytes everywhere: esbuild's output depends on its version alone, and fflate
// compresses in JavaScript and zstd-wasm in WebAssembly, where the output of native libraries differs between versions and processors.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { compress, init } from "@bokuweb/zstd-wasm";
import { build } from "esbuild";
import { gzipSync } from "fflate";

const LIMIT = 200 * 1024; // bytes of the program that the page may cost
const REPORT_LIMIT = 70 * 1024; // bytes that each report begins with
const inputs = (folder) => readdirSync(folder).filter((name) => /\.(js|mjs|css|html)$|^package(-lock)?\.json$/.test(name)).sort();

async function bundle(entry, format = "esm") {
  const result = await build({
    entryPoints: [entry], bundle: true, minify: true, write: false, format, target: ["es2022"], legalComments: "none",
    charset: "utf8", logLevel: "warning",
  });
  return Buffer.from(result.outputFiles[0].contents);
}

function licences() {
  const files = ["uplot/LICENSE", "marked/LICENSE", "dompurify/LICENSE"];
  return Buffer.from(files.map((name) => `==== ${name}\n\n${readFileSync(`node_modules/${name}`, "utf8").trim()}\n`).join("\n"));
}

function sha256(...parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

function array(name, data) {
  const lines = [];
  let line = "   ";
  for (const byte of data) {
    if (line.length + 5 > 120) {
      lines.push(line);
      line = "   ";
    }
    line += ` ${byte},`;
  }
  lines.push(line);
  return `static const unsigned char ${name}[${data.length}] = {\n${lines.join("\n")}\n};\n`;
}

const etag = (name, data) => `#define MICA_PAGE_${name.toUpperCase()}_ETAG "\\"${sha256(data).slice(0, 16)}\\""\n`;

// Which sources gave this: the tests can tell without npm whether it is up to date.
const sources = (folder, names) => sha256(...names.flatMap((name) => [name, "\0", readFileSync(`${folder}/${name}`), "\0"]));

const zip = (data) => Buffer.from(gzipSync(data, { level: 9, mtime: 0 }));
const assets = { html: readFileSync("index.html"), js: zip(await bundle("main.js")), css: zip(await bundle("page.css")), licenses: zip(licences()) };
const total = Object.values(assets).reduce((sum, data) => sum + data.length, 0);
if (total > LIMIT) throw new Error(`the assets have ${total} bytes, more than ${LIMIT}`);
writeFileSync(process.argv[2], `/* assets.h - the page's files as bytes; all but the HTML in gzip's form. Made by src/serve/page/build: do not edit.
 * Included by page.c. */
#ifndef MICA_SERVE_PAGE_ASSETS_H
#define MICA_SERVE_PAGE_ASSETS_H

#define MICA_PAGE_SOURCES "${sources(".", inputs("."))}"
${Object.entries(assets).map(([name, data]) => etag(name, data) + array(`page_${name}`, data)).join("")}
#endif
`);

// The report's script and style stand inside its HTML, where a policy allows them by their digests and nothing else.
function inside(data) {
  if (/<\/(script|style)|<!--/i.test(data)) throw new Error("the report's script or style would end its element");
  return data;
}
const notice = `/*! uPlot\n${readFileSync("node_modules/uplot/LICENSE", "utf8").trim()}\n*/\n`;
const report = { css: inside(await bundle("report/report.css")), js: inside(Buffer.from(notice + (await bundle("report/report.js", "iife")))) };
const reportTotal = report.css.length + report.js.length;
if (reportTotal > REPORT_LIMIT) throw new Error(`the report's script and style have ${reportTotal} bytes, more than ${REPORT_LIMIT}`);
await init();
const packed = Object.fromEntries(Object.entries(report).map(([name, data]) => [name, Buffer.from(compress(data, 19))]));
const allow = (data) => `'sha256-${createHash("sha256").update(data).digest("base64")}'`;
writeFileSync(process.argv[3], `/* assets.h - the style and the script of a report's page, compressed by zstd; the digests are those of their content. Made by
 * src/serve/page/build: do not edit. Included by report_html.c. */
#ifndef MICA_BENCH_REPORT_PAGE_ASSETS_H
#define MICA_BENCH_REPORT_PAGE_ASSETS_H

#define MICA_REPORT_SOURCES "${sources("report", inputs("report"))}"
#define MICA_REPORT_CSS_ALLOWED "${allow(report.css)}"
#define MICA_REPORT_JS_ALLOWED "${allow(report.js)}"
${Object.entries(packed).map(([name, data]) => array(`report_${name}`, data)).join("")}
#endif
`);
console.log(Object.entries(assets).map(([name, data]) => `${name} ${data.length}`).join(", "), `- ${total} bytes in all`);
console.log(Object.entries(report).map(([name, data]) => `report ${name} ${data.length}, ${packed[name].length} compressed`).join(", "));

// Bundles the page and writes it as C: node bundle.mjs OUT. Run by ./build, in a folder that has node_modules.
//
// The same sources and lockfile give the same bytes everywhere: esbuild's output depends on its version alone, and fflate
// compresses in JavaScript, where zlib's output differs between versions and processors.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { gzipSync } from "fflate";

const LIMIT = 200 * 1024; // bytes of the program that the page may cost
const INPUTS = readdirSync(".").filter((name) => /\.(js|mjs|css|html)$|^package(-lock)?\.json$/.test(name)).sort();

async function bundle(entry) {
  const result = await build({
    entryPoints: [entry], bundle: true, minify: true, write: false, format: "esm", target: ["es2022"], legalComments: "none",
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
  return `#define MICA_PAGE_${name.toUpperCase()}_ETAG "\\"${sha256(data).slice(0, 16)}\\""\n` +
    `static const unsigned char page_${name}[${data.length}] = {\n${lines.join("\n")}\n};\n`;
}

const zip = (data) => Buffer.from(gzipSync(data, { level: 9, mtime: 0 }));
const assets = { html: readFileSync("index.html"), js: zip(await bundle("main.js")), css: zip(await bundle("page.css")), licenses: zip(licences()) };
const total = Object.values(assets).reduce((sum, data) => sum + data.length, 0);
if (total > LIMIT) throw new Error(`the assets have ${total} bytes, more than ${LIMIT}`);
const sources = sha256(...INPUTS.flatMap((name) => [name, "\0", readFileSync(name), "\0"]));
writeFileSync(process.argv[2], `/* assets.h - the page's files as bytes; all but the HTML in gzip's form. Made by src/serve/page/build: do not edit.
 * Included by page.c. */
#ifndef MICA_SERVE_PAGE_ASSETS_H
#define MICA_SERVE_PAGE_ASSETS_H

#define MICA_PAGE_SOURCES "${sources}"
${Object.entries(assets).map(([name, data]) => array(name, data)).join("")}
#endif
`);
console.log(Object.entries(assets).map(([name, data]) => `${name} ${data.length}`).join(", "), `- ${total} bytes in all`);

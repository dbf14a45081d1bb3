// Asks the engine under Node: node run_engine.mjs, and on standard input { site, variant, model, options, requests }. Writes a line of
// JSON for what the model is, and one for each request; what is refused is { error: { code, message } }.
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pathToFileURL } from "node:url";
import { text as readText } from "node:stream/consumers";

const job = JSON.parse(await readText(process.stdin));
const { Engine } = await import(pathToFileURL(`${job.site}/engine.js`));
const tell = (value) => console.log(JSON.stringify(value));
const refused = (e) => ({ error: { code: e.code ?? "CRASH", message: e.message } });

const engine = await Engine.create(await WebAssembly.compile(await readFile(`${job.site}/mica-${job.variant}.wasm`)));

async function open() {
  const { size } = await stat(job.model);
  await engine.load(Readable.toWeb(createReadStream(job.model, { highWaterMark: 1 << 20 })), job.bytes ?? size);
  return engine.open(job.options);
}

function reply({ cancel_after: cancelAfter, ...request }) {
  let text = "";
  const tokens = [];
  engine.submit(request, { onText: (piece) => (text += piece), onToken: (token) => tokens.push(token) });
  do if (tokens.length === cancelAfter) engine.cancel();
  while (engine.step());
  return { text, tokens, result: engine.result };
}

try {
  tell(await open());
  for (const request of job.requests ?? []) {
    try {
      tell(reply(request));
    } catch (e) {
      tell(refused(e));
    }
  }
} catch (e) {
  tell(refused(e));
}

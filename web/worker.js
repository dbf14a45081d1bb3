// worker.js - keeps the engine off the page's thread. Messages in: load, generate, stop; out: progress, ready, text, done, failed. Between
// two steps it looks at its messages, so that a stop is heard after one token, or 32 of the prompt.

import { compileBest, Engine, EngineError } from "./engine.js";

let engine = null;
let stopped = 0; // the number of the last reply that shall not go on
let work = Promise.resolve(); // loads and replies, one after another

// The end of this turn of the event loop. A timer would wait for 4 ms.
const { port1, port2 } = new MessageChannel();
const turn = () => new Promise((resolve) => {
  port1.onmessage = resolve;
  port2.postMessage(null);
});

// A stream of a file or of what an address gives, and its length. A server that does not tell the length (or compresses what it sends)
// is read to the end first.
async function open({ file, url }) {
  if (file) return [file.stream(), file.size];
  const response = await fetch(url);
  if (!response.ok) throw new EngineError("FETCH", `${url} cannot be fetched: HTTP ${response.status}`);
  const length = response.headers.get("Content-Encoding") ? 0 : Number(response.headers.get("Content-Length"));
  if (length > 0) return [response.body, length];
  const blob = await response.blob();
  return [blob.stream(), blob.size];
}

async function load(message) {
  engine = null; // its memory with it
  const fresh = await Engine.create(await compileBest(new URL(".", import.meta.url), message.variant));
  const [stream, bytes] = await open(message);
  let told = 0;
  await fresh.load(stream, bytes, (done) => {
    if (done < bytes && performance.now() - told < 50) return;
    told = performance.now();
    postMessage({ type: "progress", done, bytes });
  });
  const info = fresh.open(message.options);
  engine = fresh;
  postMessage({ type: "ready", info });
}

async function generate({ id, request }) {
  if (!engine) throw new EngineError("STATE", "no model is loaded");
  engine.submit(request, {
    onText: (text) => postMessage({ type: "text", id, text }),
    onToken: (token) => postMessage({ type: "token", id, token }),
  });
  do {
    await turn();
    if (stopped >= id) engine.cancel();
  } while (engine.step());
  postMessage({ type: "done", id, result: engine.result });
}

async function handle(data) {
  try {
    await (data.type === "load" ? load(data) : generate(data));
  } catch (e) {
    // What is no answer of the engine is the end of it: its memory may be in any state.
    if (!(e instanceof EngineError)) engine = null;
    postMessage({ type: "failed", id: data.id, code: e.code ?? "CRASH", message: e.message });
  }
}

addEventListener("message", ({ data }) => {
  if (data.type === "stop") stopped = Math.max(stopped, data.id);
  else work = work.then(() => handle(data));
});

// engine.js - the engine in this thread: a WebAssembly module around one model. worker.js keeps it off the page's thread; it runs under
// Node as well.
//
//     const engine = await Engine.create(await compileBest(new URL(".", import.meta.url)));
//     await engine.load(blob.stream(), blob.size);  engine.open({ context: 2048 });
//     engine.submit({ messages, max_tokens: 100 }, { onText });  while (engine.step()) await turn();  engine.result

import { wasiImports } from "./wasi.js";

// Text becomes a number of bytes in the module's memory for the time of one call.
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class EngineError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "EngineError";
    this.code = code;
  }
}

// A module of one function with one relaxed instruction (i32x4.relaxed_dot_i8x16_i7x16_add_s): what refuses it refuses the other, too.
const RELAXED = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 19, 1, 17, 0, 65, 0, 253, 15, 65, 0, 253, 15, 65, 0, 253, 15, 253,
  147, 2, 11,
]);

export const hasRelaxed = () => WebAssembly.validate(RELAXED);

// The module that this browser runs fastest, from the folder `base`.
export async function compileBest(base, variant = hasRelaxed() ? "relaxed" : "simd128") {
  const url = new URL(`mica-${variant}.wasm`, base);
  const response = await fetch(url);
  if (!response.ok) throw new EngineError("FETCH", `${url} cannot be fetched: HTTP ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer()); // not by streaming, which wants a MIME type of the server
}

export class Engine {
  static async create(module, print = (line) => console.error(line)) {
    const engine = new Engine();
    const imports = wasiImports(module, () => engine.exports.memory, print);
    imports.mica = {
      on_text: (at, length) => engine.onText?.(engine.read(at, length)),
      on_token: (token) => engine.onToken?.(token),
    };
    engine.exports = (await WebAssembly.instantiate(module, imports)).exports;
    engine.exports._initialize();
    engine.self = engine.exports.web_new() >>> 0;
    if (!engine.self) throw new EngineError("MICA_OUT_OF_MEMORY", "there is no memory for the engine");
    return engine;
  }

  // ---- Between two memories ----

  read(at, length) {
    return decoder.decode(new Uint8Array(this.exports.memory.buffer, at >>> 0, length >>> 0));
  }

  answer() {
    const length = this.exports.web_length(this.self) >>> 0;
    return length ? JSON.parse(this.read(this.exports.web_text(this.self), length)) : null;
  }

  // Calls web_NAME(self, text, length); what fails is thrown.
  call(name, value) {
    const bytes = encoder.encode(JSON.stringify(value));
    const at = this.exports.web_buffer(bytes.length) >>> 0;
    if (!at) throw new EngineError("MICA_OUT_OF_MEMORY", `there is no memory for ${bytes.length} bytes of text`);
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    const status = this.exports[`web_${name}`](this.self, at, bytes.length);
    this.exports.web_release(at);
    const answer = this.answer();
    if (status !== 0) throw new EngineError(answer?.code ?? "MICA_OUT_OF_MEMORY", answer?.message ?? "there is no memory");
    return answer;
  }

  // ---- The model ----

  // Copies `bytes` bytes of a ReadableStream into the module's memory, where they stay; onProgress gets how many are there.
  async load(stream, bytes, onProgress = () => {}) {
    const at = bytes > 0 ? this.exports.web_alloc(this.self, bytes) >>> 0 : 0;
    if (bytes > 0 && !at) throw new EngineError("MICA_OUT_OF_MEMORY", `the browser gives no memory for a model of ${bytes} bytes`);
    const reader = stream.getReader();
    let done = 0;
    for (;;) {
      const { value, done: over } = await reader.read();
      if (over) break;
      if (done + value.length > bytes) {
        await reader.cancel();
        throw new EngineError("FETCH", `the file has more than the ${bytes} bytes that it was said to have`);
      }
      new Uint8Array(this.exports.memory.buffer, at + done, value.length).set(value);
      done += value.length;
      onProgress(done, bytes);
    }
    if (done < bytes) throw new EngineError("FETCH", `the file ended after ${done} of ${bytes} bytes`);
  }

  // { context, kernels }, both optional. What the model is, and what it takes. Kernels that fail the engine's check, because the browser
  // gets an instruction wrong, are not used: info.refused says so.
  open(options = {}) {
    try {
      this.info = this.call("open", options);
    } catch (e) {
      if (e.code !== "MICA_BAD_KERNELS" || options.kernels) throw e;
      this.info = { ...this.call("open", { ...options, kernels: "simd128" }), refused: e.message };
    }
    return this.info;
  }

  // ---- A reply ----

  // { messages } or { prompt }, and max_tokens, temperature, top_p, top_k, min_p, seed, ignore_eos.
  submit(request, { onText, onToken } = {}) {
    this.onText = onText;
    this.onToken = onToken;
    this.result = null;
    this.call("submit", request);
  }

  // Computes one token, or 32 of the prompt. False: the reply is over, and this.result says how.
  step() {
    if (this.exports.web_step(this.self) > 0) return true;
    this.result = this.answer();
    return false;
  }

  // The next step ends the reply.
  cancel() {
    this.exports.web_cancel(this.self);
  }
}

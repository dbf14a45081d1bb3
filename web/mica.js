// mica.js - for pages: a model in a worker.
//
//     const mica = new Mica();
//     await mica.load({ file }, { onProgress });          // or { url }
//     for await (const text of mica.generate({ messages, max_tokens: 200 })) out.append(text);
//     mica.result                                          // stop_reason, decode_tps, ...
//
// mica.stop() ends the reply that is being written; mica.close() ends the worker, and with it the model's memory.

export class Mica {
  #worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  #load = null; // { resolve, reject, onProgress }
  #reply = null; // { id, push, fail }
  #id = 0;

  constructor() {
    this.#worker.addEventListener("message", ({ data }) => this.#hear(data));
    this.#worker.addEventListener("error", (e) => this.#fail(new Error(e.message || "the worker cannot be started")));
  }

  #hear(data) {
    if (data.type === "progress") this.#load?.onProgress(data.done, data.bytes);
    else if (data.type === "ready") this.#load?.resolve((this.info = data.info));
    else if (data.type === "failed") this.#fail(Object.assign(new Error(data.message), { code: data.code }), data.id);
    else if (data.id === this.#reply?.id) this.#reply.push(data);
  }

  #fail(error, id) {
    if (id === undefined) this.#load?.reject(error);
    if (id === undefined || id === this.#reply?.id) this.#reply?.push({ type: "failed", error });
  }

  // source: { file } (a File or Blob) or { url }. options: { context, kernels } for the engine; `variant` names the module to use,
  // "simd128" or "relaxed", instead of the one that fits this browser.
  load(source, { context, kernels, variant, onProgress = () => {} } = {}) {
    this.info = null;
    return new Promise((resolve, reject) => {
      this.#load = { resolve, reject, onProgress };
      const url = source.url && new URL(source.url, document.baseURI).href;
      this.#worker.postMessage({ type: "load", file: source.file, url, variant, options: { context, kernels } });
    });
  }

  // The text of a reply as it comes. this.result and this.tokens (ids) tell the rest. Whoever leaves the loop stops the reply.
  async *generate(request) {
    const id = ++this.#id, queue = [];
    let wake = () => {};
    this.#reply = { id, push: (data) => (queue.push(data), wake()) };
    this.result = null;
    this.tokens = [];
    this.#worker.postMessage({ type: "generate", id, request });
    try {
      for (;;) {
        while (!queue.length) await new Promise((resolve) => (wake = resolve));
        const data = queue.shift();
        if (data.type === "text") yield data.text;
        else if (data.type === "token") this.tokens.push(data.token);
        else if (data.type === "failed") throw data.error;
        else if (data.result?.error) throw new Error(data.result.error);
        else return void (this.result = data.result);
      }
    } finally {
      if (!this.result) this.stop();
    }
  }

  stop() {
    if (this.#reply) this.#worker.postMessage({ type: "stop", id: this.#reply.id });
  }

  close() {
    this.#worker.terminate();
  }
}

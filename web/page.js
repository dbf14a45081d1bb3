// page.js - a chat with a model in this tab: chooses a file or an address, shows replies as they come, stops them.

import { Mica } from "./mica.js";

const $ = (id) => document.getElementById(id);
const mica = new Mica();
const messages = [];
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(0)} MB`;

window.mica = mica; // for whoever opens the console

function note(text, bad = false) {
  $("note").textContent = text;
  $("note").classList.toggle("bad", bad);
}

function show(role, text) {
  const message = document.createElement("div");
  message.className = `message ${role}`;
  message.textContent = text;
  $("log").append(message);
  return message;
}

// ---- Loading ----

function progress(done, bytes) {
  $("progress").value = done / bytes;
  note(`${megabytes(done)} of ${megabytes(bytes)}`);
}

async function load(source) {
  $("load").disabled = true;
  $("progress").hidden = false;
  $("composer").hidden = true;
  const began = performance.now();
  try {
    const info = await mica.load(source, { context: $("context").valueAsNumber || undefined, onProgress: progress });
    messages.length = 0;
    $("log").replaceChildren();
    const millions = (info.parameters / 1e6).toFixed(0), seconds = ((performance.now() - began) / 1000).toFixed(1);
    $("model").textContent =
      `${info.name || info.architecture} · ${millions} million weights · context ${info.context} · ${info.kernels}`;
    const memory = `${megabytes(info.file_bytes)} of weights, ${megabytes(info.kv_bytes)} for the context`;
    note(`Loaded in ${seconds} s: ${memory}${info.refused ? ` · ${info.refused}` : ""}`);
    $("composer").hidden = false;
    $("prompt").focus();
  } catch (e) {
    $("model").textContent = "No model is loaded";
    note(e.message, true);
  } finally {
    $("load").disabled = false;
    $("progress").hidden = true;
  }
}

$("loader").addEventListener("submit", (event) => {
  event.preventDefault();
  const file = $("file").files[0], url = $("url").value.trim();
  if (file || url) load(file ? { file } : { url });
  else note("Choose a file, or give an address.", true);
});

// ---- Talking ----

function busy(is) {
  $("send").hidden = is;
  $("stop").hidden = !is;
}

// Text that comes faster than the screen is drawn is shown once a frame.
function painter(element) {
  let text = "", due = false;
  const paint = () => {
    due = false;
    const follows = $("log").scrollHeight - $("log").scrollTop - $("log").clientHeight < 80;
    element.textContent = text;
    if (follows) $("log").scrollTop = $("log").scrollHeight;
  };
  return {
    add(piece) {
      text += piece;
      if (!due) requestAnimationFrame(paint);
      due = true;
    },
    end() {
      paint();
      return text;
    },
  };
}

async function say(text) {
  show("user", text);
  messages.push({ role: "user", content: text });
  const paint = painter(show("assistant", ""));
  busy(true);
  note("Reading the prompt…");
  try {
    for await (const piece of mica.generate({ messages })) paint.add(piece);
    const r = mica.result;
    const how = r.stop_reason === "cancelled" ? "stopped" : r.stop_reason === "context" ? "the context is full" : "done";
    note(
      `${how} · ${r.gen_n} tokens, ${r.decode_tps.toFixed(1)} a second · ` +
        `prompt ${r.prompt_n} tokens (${r.cached_n} known), first one after ${r.ttft_ms.toFixed(0)} ms`,
    );
  } catch (e) {
    note(e.message, true);
  } finally {
    messages.push({ role: "assistant", content: paint.end() });
    busy(false);
    $("prompt").focus();
  }
}

function send() {
  const text = $("prompt").value.trim();
  if (!text || $("send").hidden) return;
  $("prompt").value = "";
  say(text);
}

$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
$("prompt").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
$("stop").addEventListener("click", () => mica.stop());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") mica.stop();
});

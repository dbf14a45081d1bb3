// The conversation: sends it, shows the reply while it comes, stops it.
import { ApiError, chat } from "./api.js";
import { render, renderCode } from "./markdown.js";
import * as settings from "./settings.js";

const log = document.getElementById("log");
const empty = document.getElementById("empty");
const prompt = document.getElementById("prompt");
const send = document.getElementById("send");
const stopButton = document.getElementById("stop");
const note = document.getElementById("note");

let messages = []; // as the API wants them, without the system prompt
let running = null; // the AbortController of the reply that is coming

function say(text) { note.textContent = text; }

function fit() {
  prompt.style.height = "auto";
  prompt.style.height = `${prompt.scrollHeight + 2}px`;
}

// Follows the reply unless the reader has scrolled up.
function keepingEnd(change) {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  change();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function addMessage(role) {
  const article = document.createElement("article");
  article.className = `message ${role}`;
  article.setAttribute("aria-label", role === "user" ? "You" : "Reply");
  const body = document.createElement("div");
  body.className = "body";
  article.append(body);
  empty.hidden = true;
  log.append(article);
  log.scrollTop = log.scrollHeight;
  return { article, body };
}

function button(label, action) {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = label;
  b.addEventListener("click", () => action(b));
  return b;
}

// ---- One reply ----

function showReasoning(view, text) {
  if (!view.reasoning) {
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    view.reasoning = document.createElement("div");
    details.className = "reasoning";
    summary.textContent = "Reasoning";
    details.append(summary, view.reasoning);
    view.article.prepend(details);
  }
  view.reasoning.textContent = text;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text; // not whole
  }
}

function draw(view, reply, json) {
  keepingEnd(() => {
    if (reply.reasoning) showReasoning(view, reply.reasoning);
    if (json) renderCode(view.body, reply.ended ? pretty(reply.content) : reply.content);
    else render(view.body, reply.content);
  });
}

// Draws at most once a frame, however many tokens come.
function drawer(view, reply, json) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (!reply.ended) draw(view, reply, json);
    });
  };
}

function take(reply, chunk) {
  const choice = chunk.choices[0];
  reply.content += choice?.delta?.content ?? "";
  reply.reasoning += choice?.delta?.reasoning_content ?? "";
  reply.finish = choice?.finish_reason ?? reply.finish;
  reply.timings = chunk.mica ?? reply.timings;
}

function figures(reply) {
  const t = reply.timings;
  const parts = [];
  if (reply.stopped) parts.push("stopped");
  if (reply.finish === "length") parts.push("cut: no tokens left");
  if (t) {
    parts.push(`${t.gen_n} tokens`, `${t.decode_tps.toFixed(1)} tokens/s`, `first after ${t.ttft_ms.toFixed(0)} ms`);
    parts.push(`prompt ${t.prompt_n}, ${t.cached_n} cached`, `seed ${t.seed}`);
  }
  return parts.join(" · ");
}

function addFoot(view, reply, error) {
  const foot = document.createElement("div");
  const text = document.createElement("span");
  foot.className = "foot";
  text.textContent = error ?? figures(reply);
  text.classList.toggle("error", Boolean(error));
  foot.append(text);
  if (reply.content)
    foot.append(button("Copy", async (b) => {
      await navigator.clipboard.writeText(reply.content);
      b.textContent = "Copied";
    }));
  foot.append(button("Try again", () => retry(view)));
  keepingEnd(() => view.article.append(foot));
}

function setBusy(busy) {
  send.hidden = busy;
  stopButton.hidden = !busy;
}

async function reply(request, json) {
  const view = addMessage("assistant");
  const state = { content: "", reasoning: "", finish: null, timings: null, ended: false, stopped: false };
  const redraw = drawer(view, state, json);
  const abort = running = new AbortController();
  let problem;
  view.at = messages.length;
  view.article.classList.add("running");
  setBusy(true);
  say("The reply is being written.");
  try {
    for await (const chunk of chat(request, abort.signal)) {
      take(state, chunk);
      redraw();
    }
  } catch (error) {
    state.stopped = abort.signal.aborted;
    if (!state.stopped) problem = error instanceof ApiError ? error.message : `the server cannot be reached (${error.message})`;
    if (error.status === 401) document.dispatchEvent(new Event("locked"));
  }
  if (running !== abort) return; // a new chat was begun meanwhile
  running = null;
  state.ended = true;
  view.article.classList.remove("running");
  draw(view, state, json);
  if (state.content) messages.push({ role: "assistant", content: state.content });
  addFoot(view, state, problem);
  setBusy(false);
  say(problem ? "The reply failed." : state.stopped ? "The reply was stopped." : "The reply is complete.");
}

// ---- The conversation ----

function ask() {
  const now = settings.read();
  if (!now) return;
  const system = now.system ? [{ role: "system", content: now.system }] : [];
  reply({ ...now.request, messages: [...system, ...messages] }, now.json);
}

function submit() {
  const text = prompt.value.trim();
  if (!text || running || !settings.read()) return;
  if (messages.at(-1)?.role === "user") messages.pop(); // its reply failed: templates want the roles to alternate
  addMessage("user").body.textContent = text;
  messages.push({ role: "user", content: text });
  prompt.value = "";
  fit();
  ask();
}

// Takes back this reply and what followed it.
function retry(view) {
  if (running || !settings.read()) return;
  messages = messages.slice(0, view.at);
  while (log.lastElementChild !== view.article) log.lastElementChild.remove();
  view.article.remove();
  prompt.focus();
  ask();
}

export function stop() {
  if (!running) return false;
  running.abort();
  prompt.focus();
  return true;
}

function clear() {
  const before = running;
  running = null;
  before?.abort();
  messages = [];
  for (const article of log.querySelectorAll(".message")) article.remove();
  empty.hidden = false;
  setBusy(false);
  say("A new chat.");
  prompt.focus();
}

export function start() {
  document.getElementById("new").addEventListener("click", clear);
  stopButton.addEventListener("click", stop);
  document.getElementById("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  prompt.addEventListener("input", fit);
  prompt.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
}

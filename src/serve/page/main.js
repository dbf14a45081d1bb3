// The page of mica serve: chat at the left, the machine and the settings at the right.
import { setKey, status } from "./api.js";
import * as charts from "./charts.js";
import * as chat from "./chat.js";
import * as settings from "./settings.js";

const locked = document.getElementById("locked");
const connection = document.getElementById("connection");
const { bytes } = charts;

function lock() {
  if (!locked.hidden) return;
  locked.hidden = false;
  document.getElementById("key").focus();
}

function count(n) { return n >= 1e9 ? `${(n / 1e9).toFixed(2)} B` : `${(n / 1e6).toFixed(0)} M`; }

function showModel(now) {
  const m = now.model;
  const text = `${m.id} · ${m.architecture}, ${count(m.n_params)} parameters · ${now.n_ctx} tokens of context · ${m.kernels}`;
  const line = document.getElementById("model");
  if (line.textContent === text) return;
  line.textContent = line.title = text;
  document.title = `${m.id} – mica`;
  document.getElementById("empty-title").textContent = m.id;
  document.getElementById("version").textContent = `mica ${now.version}`;
}

function addRow(body) {
  const row = body.insertRow();
  const head = document.createElement("th");
  head.scope = "row";
  row.append(head, document.createElement("td"));
  return row;
}

function showPlan(now) {
  const plan = now.memory.plan;
  const rows = [["Weights", bytes(plan.weights_bytes)], [`KV cache, ${now.load.slots} × ${now.n_ctx}`, bytes(plan.kv_bytes)],
    ["Workspace", bytes(plan.workspace_bytes)], ["Planned in all", bytes(plan.total_bytes)],
    ["Highest so far", bytes(now.memory.peak_bytes)], ["Free on this machine", bytes(now.memory.available_bytes)],
    ["Tokens in the KV cache", `${now.kv.tokens} of ${now.kv.capacity}`]];
  const body = document.querySelector("#plan tbody");
  rows.forEach(([name, value], i) => {
    const row = body.rows[i] ?? addRow(body); // kept: a selection in it stays
    row.cells[0].textContent = name;
    row.cells[1].textContent = value;
  });
}

async function look() {
  try {
    const now = await status();
    locked.hidden = true;
    connection.textContent = `${now.state}, up ${Math.floor(now.uptime_s)} s, ${now.threads === 1 ? "1 thread" : `${now.threads} threads`}`;
    showModel(now);
    showPlan(now);
    charts.add(now);
  } catch (error) {
    connection.textContent = error.status ? error.message : "the server cannot be reached";
    if (error.status === 401) lock();
  }
}

async function watch() {
  if (!document.hidden) await look();
  setTimeout(watch, 1000);
}

locked.addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(document.getElementById("key").value);
  document.getElementById("prompt").focus();
  look();
});
document.addEventListener("locked", lock);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing) return;
  if (settings.panelCovers()) settings.showPanel(false);
  else chat.stop();
});

settings.start();
chat.start();
watch();

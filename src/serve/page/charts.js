// The machine, watched: one look at the status a second, five minutes of it in charts.
import uPlot from "uplot";

const SECONDS = 300;
const HEIGHT = 90;
const charts = document.getElementById("charts");
const dark = matchMedia("(prefers-color-scheme: dark)");

const MIB = 1 << 20;
export function bytes(n) {
  if (n === null || n === undefined) return "unknown";
  return n >= 1024 * MIB ? `${(n / MIB / 1024).toFixed(2)} GiB` : `${(n / MIB).toFixed(n < 10 * MIB ? 1 : 0)} MiB`;
}

function share(now, before, of) {
  const count = now[of].count - before[of].count;
  return count > 0 ? ((now[of].sum_s - before[of].sum_s) / count) * 1000 : null;
}

const rate = (now, before, of) => (now.tokens[of] - before.tokens[of]) / (now.clock_s - before.clock_s);
const mib = (n) => (n === null ? null : n / MIB);

// What each chart shows of two looks at the status, and how it says the newest values. A value that is not known is null.
const kinds = [
  {
    title: "Tokens/s, all replies together", series: ["tokens/s"],
    values: (now, before) => [(now.tokens.generated - before.tokens.generated) / (now.clock_s - before.clock_s)],
    text: ([rate]) => [rate.toFixed(1)],
  },
  {
    title: "Time to first token", series: ["ms"], sparse: true,
    values: (now, before) => [share(now, before, "ttft")],
    text: ([ms]) => [`${ms.toFixed(0)} ms`],
  },
  {
    title: "Memory", series: ["resident", "own"],
    values: (now) => [mib(now.memory.rss_bytes), mib(now.memory.anon_bytes)],
    text: ([resident, own]) =>
      resident === null ? ["not available"] : [`${resident.toFixed(0)} MiB resident`, own === null ? "" : `${own.toFixed(0)} MiB own`],
  },
  {
    title: "Requests", series: ["running", "waiting"], whole: true,
    values: (now) => [now.load.running, now.load.waiting],
    text: ([running, waiting], now) => [`${running} of ${now.load.slots} running`, `${waiting} waiting`],
  },
  {
    title: "Temperature", series: ["°C"],
    values: (now) => [now.temperature?.celsius ?? null],
    text: ([celsius], now) => [celsius === null ? "not available" : `${celsius.toFixed(0)} °C, ${now.temperature.source}`],
  },
];

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function options(kind, width) {
  const soft = colour("--soft"), line = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: soft, grid: line, ticks: { show: false }, font: "11px system-ui" };
  return {
    width, height: HEIGHT, legend: { show: false }, cursor: { show: false },
    scales: { x: { time: false, range: (_, min) => [Math.min(min, -60), 0] }, y: { range: (_, min, max) => [0, Math.max(max ?? 0, 1) * 1.1] } },
    axes: [
      { ...axis, size: 18, space: 80, values: (_, times) => times.map((t) => `${Math.round(t)} s`) },
      { ...axis, size: 44, space: 25, incrs: kind.whole ? [1, 2, 5, 10, 20, 50, 100] : undefined },
    ],
    series: [{}, ...kind.series.map((label, i) => ({
      label, stroke: colour(i === 0 ? "--mark" : "--second"), width: 2, spanGaps: Boolean(kind.sparse),
      points: { show: Boolean(kind.sparse), size: 5 },
    }))],
    padding: [6, 14, 0, 0],
  };
}

class Chart {
  constructor(kind) {
    const box = document.createElement("div");
    const head = document.createElement("h3");
    this.kind = kind;
    this.label = document.createElement("span");
    this.plot = document.createElement("div");
    this.rows = kind.series.map(() => []);
    box.className = "chart";
    this.plot.className = "plot";
    this.plot.hidden = true;
    this.plot.setAttribute("aria-hidden", "true"); // the label says the newest values
    this.parts = kind.series.map(() => this.label.appendChild(document.createElement("b")));
    this.parts[0].textContent = "…";
    head.append(kind.title, this.label);
    box.append(head, this.plot);
    charts.append(box);
  }

  add(now, before, times) {
    const values = this.kind.values(now, before);
    this.rows.forEach((row, i) => {
      row.push(values[i]);
      if (row.length > SECONDS) row.shift();
    });
    if (!this.kind.sparse || values[0] !== null) this.say(this.kind.text(values, now));
    this.plot.hidden = !this.rows[0].some((value) => value !== null); // nothing to show is not zero
    this.draw(times);
  }

  // The newest values, in their lines' colours.
  say(texts) { this.parts.forEach((part, i) => { part.textContent = texts[i] ?? ""; }); }

  draw(times) {
    const width = this.plot.clientWidth, last = times.at(-1);
    if (!width) return;
    const data = [times.map((t) => t - last), ...this.rows];
    if (!this.view) this.view = new uPlot(options(this.kind, width), data, this.plot);
    if (this.view.width !== width) this.view.setSize({ width, height: HEIGHT });
    this.view.setData(data);
  }

  forget() {
    this.view?.destroy();
    this.view = null;
  }
}

const all = kinds.map((kind) => new Chart(kind));
let before = null;
let times = [];

// A look at the status. After a restart of the server its counters begin anew.
export function add(now) {
  if (before && now.clock_s > before.clock_s && now.tokens.prompt >= before.tokens.prompt) {
    times.push(now.clock_s);
    if (times.length > SECONDS) times.shift();
    for (const chart of all) chart.add(now, before, times);
  }
  before = now;
}

dark.addEventListener("change", () => {
  for (const chart of all) {
    chart.forget();
    if (times.length > 0) chart.draw(times);
  }
});

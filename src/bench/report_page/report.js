// The charts of a report. Every figure stands in the tables too, which need no script; what is drawn here comes from the page's own data.
import uPlot from "uplot";

const MIB = 1 << 20;
const HEIGHT = 230;
const PRINT_WIDTH = 640; // CSS pixels that fit on a sheet of A4
const { runs } = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)"), print = matchMedia("print");

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colourOf = (i) => colour(`--c${i % 8}`);
const short = (x) => (x === null || x === undefined ? "–" : Number(x.toPrecision(4)).toString());

// Several runs in one chart: each has its own x; where another has none there is a gap, which lines pass over.
const joined = (tables) => (tables.length ? uPlot.join(tables) : null);

function lines(of, range) {
  return of.map((run) => ({ label: run.name, stroke: colourOf(run.i), width: 1.5, dash: run.i > 7 ? [6, 4] : undefined, spanGaps: true, points: { show: false }, ...range }));
}

// ---- Tokens/s over time, with the step of a throttle ----

function markStep(u, run) {
  const { ctx } = u, { start_s, end_s, before_tps, after_tps, depth_pct } = run.throttle;
  const x = (t) => u.valToPos(t, "x", true), y = (r) => u.valToPos(r, "y", true);
  const { left, top, width, height } = u.bbox, bad = colour("--bad");
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.fillStyle = ctx.strokeStyle = bad;
  ctx.globalAlpha = 0.15;
  ctx.fillRect(x(start_s), top, Math.max(x(end_s) - x(start_s), 2), height);
  ctx.globalAlpha = 1;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(left, y(before_tps));
  ctx.lineTo(x(start_s), y(before_tps));
  ctx.lineTo(x(end_s), y(after_tps));
  ctx.lineTo(left + width, y(after_tps));
  ctx.stroke();
  ctx.font = `${12 * devicePixelRatio}px system-ui`;
  ctx.textAlign = x(end_s) < left + width / 2 ? "left" : "right";
  ctx.textBaseline = "bottom";
  ctx.fillText(`−${depth_pct.toFixed(0)} % at ${start_s.toFixed(0)} s`, x(end_s) + (ctx.textAlign === "left" ? 6 : -6) * devicePixelRatio, y(before_tps) - 3 * devicePixelRatio);
  ctx.restore();
}

const rate = {
  title: "Tokens/s over decoding time", x: "s", y: "tokens/s", id: "rate",
  of: runs.filter((r) => r.rate),
  data() { return joined(this.of.map((r) => [r.rate.values.map((_, k) => (k + 0.5) * r.rate.bin_s), r.rate.values])); },
  series() { return lines(this.of); },
  draw(u) { for (const run of this.of) if (run.throttle) markStep(u, run); },
  caption() {
    const steps = this.of.filter((r) => r.throttle), untold = this.of.filter((r) => r.figures.throttle_depth_pct === null);
    const said = steps.length ? [`Throttled: ${steps.map((r) => `${r.name}, ${r.throttle.depth_pct.toFixed(1)} % slower from ${r.throttle.start_s.toFixed(0)} s on`).join("; ")}.`] : [];
    if (!steps.length && untold.length < this.of.length) said.push("No throttling was found.");
    if (untold.length) said.push(`Too short to tell: ${untold.map((r) => r.name).join("; ")}.`);
    return said.join(" ");
  },
};

// ---- Times between tokens ----

const itl = {
  title: "Time between tokens", x: "ms", y: "% of tokens", id: "itl", log: true,
  of: runs.filter((r) => r.itl),
  data() {
    return joined(this.of.map(({ itl: { first, per_decade, counts } }) => {
      const total = counts.reduce((sum, n) => sum + n, 0), edge = (k) => 10 ** ((first + k) / per_decade);
      return [[-1, ...counts.keys(), counts.length].map((k) => edge(k)), [0, ...counts.map((n) => (100 * n) / total), 0]];
    }));
  },
  series() { return lines(this.of, { paths: uPlot.paths.stepped({ align: 1 }) }); },
  caption() { return `p50 / p95 / p99: ${this.of.map((r) => `${r.name} ${[r.figures.itl_p50_ms, r.figures.itl_p95_ms, r.figures.itl_p99_ms].map(short).join(" / ")} ms`).join("; ")}.`; },
};

// ---- Memory ----

const memory = {
  title: "Memory over the run", x: "s", y: "MiB resident", id: "memory",
  of: runs.filter((r) => r.memory),
  data() { return joined(this.of.map((r) => [r.memory.t_s, r.memory.rss_bytes.map((n) => n / MIB)])); },
  series() { return lines(this.of); },
  caption() { return `Peaks, as the system counts them: ${this.of.map((r) => `${r.name} ${r.figures.peak_rss_bytes === null ? "unknown" : `${(r.figures.peak_rss_bytes / MIB).toFixed(0)} MiB`}`).join("; ")}.`; },
};

// ---- Roofline: the ceiling of a memory rate is a line over the bytes that a token reads ----

const roofline = {
  title: "Roofline of decoding", x: "MB read per token", y: "tokens/s", id: "roofline", log: true, logY: true,
  of: runs.filter((r) => r.roofline),
  data() {
    const mb = this.of.map((r) => r.roofline.bytes_per_token / 1e6), low = Math.min(...mb) / 2, high = Math.max(...mb) * 2;
    const ceiling = (r, x) => r.roofline.read_bytes_per_s / (x * 1e6);
    return joined([...this.of.map((r, k) => [[low, mb[k], high], [low, mb[k], high].map((x) => ceiling(r, x))]), ...this.of.map((r, k) => [[mb[k]], [r.roofline.tps]])]);
  },
  series() {
    return [...lines(this.of).map((s) => ({ ...s, label: `${s.label}: ceiling`, dash: [6, 4] })),
      ...lines(this.of).map((s) => ({ ...s, points: { show: true, size: 11, fill: s.stroke, stroke: s.stroke } }))];
  },
  caption() {
    return `Dashed: the memory rate that as many threads reached here, divided by the bytes. ${this.of.map((r) => `${r.name} ${short(r.figures.roofline_pct)} % of ${(r.roofline.read_bytes_per_s / 1e9).toFixed(1)} GB/s`).join("; ")}.`;
  },
};

// ---- Drawing ----

// 1, 2, 5, 10, ... of a logarithmic axis; all of 1 to 9 where that gives too few.
function logTicks(min, max) {
  const ticks = (digits) => {
    const found = [];
    for (let k = Math.floor(Math.log10(min)); k <= Math.log10(max); k++) found.push(...digits.map((d) => Number(`${d}e${k}`)));
    return found.filter((v) => v >= min && v <= max);
  };
  const few = ticks([1, 2, 5]);
  return few.length > 2 ? few : ticks([1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

function options(kind, width, read) {
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui", labelFont: "11px system-ui", labelSize: 16 };
  const log = { splits: (_, __, min, max) => logTicks(min, max), values: (_, ticks) => ticks.map(short), filter: (_, ticks) => ticks };
  const tight = (part) => (_, min, max) => [min * (1 - part), max * (1 + part)];
  return {
    width, height: HEIGHT, legend: { show: false }, padding: [10, 12, 0, 0],
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: false, distr: kind.log ? 3 : 1, ...(kind.log ? { range: tight(0.1) } : {}) },
      y: { distr: kind.logY ? 3 : 1, range: kind.logY ? tight(0.3) : (_, min, max) => [0, Math.max(max ?? 0, 1e-9) * 1.2] },
    },
    axes: [{ ...axis, label: kind.x, size: 28, ...(kind.log ? log : {}) }, { ...axis, label: kind.y, size: 46, ...(kind.logY ? log : {}) }],
    series: [{}, ...kind.series()],
    hooks: {
      draw: kind.draw ? [(u) => kind.draw(u)] : [],
      setCursor: [(u) => {
        const at = u.cursor.idx;
        const values = at === null || at === undefined ? [] : u.series.slice(1).flatMap((s, k) => (u.data[k + 1][at] == null ? [] : [`${s.label} ${short(u.data[k + 1][at])}`]));
        read.textContent = values.length ? `${short(u.data[0][at])} ${kind.x}: ${values.join(", ")}` : "";
      }],
    },
  };
}

class Chart {
  constructor(kind, parent) {
    const figure = document.createElement("figure"), head = document.createElement("h3"), caption = document.createElement("figcaption");
    this.kind = kind;
    this.plot = document.createElement("div");
    this.read = document.createElement("p");
    figure.id = `chart-${kind.id}`;
    head.textContent = kind.title;
    this.plot.className = "plot";
    this.plot.setAttribute("role", "img");
    this.read.className = "read";
    caption.textContent = kind.of.length ? kind.caption() : "Not known of any run.";
    this.plot.setAttribute("aria-label", `${kind.title}. ${caption.textContent}`);
    figure.append(head, this.plot, this.read, caption);
    parent.append(figure);
  }

  draw() {
    const width = print.matches ? PRINT_WIDTH : this.plot.parentElement.clientWidth - 34;
    if (!this.kind.of.length || width <= 0) return;
    this.view?.destroy();
    this.read.textContent = "";
    this.width = width;
    this.view = new uPlot(options(this.kind, width, this.read), this.kind.data(), this.plot);
  }

  fit() {
    const width = this.plot.parentElement.clientWidth - 34;
    if (!print.matches && width > 0 && width !== this.width) this.draw();
  }
}

function legend(parent) {
  for (const run of runs) {
    const item = document.createElement("li"), dot = document.createElement("span");
    dot.className = `dot c${run.i % 8}`;
    item.append(dot, run.name);
    parent.append(item);
  }
}

document.getElementById("charts").hidden = false;
legend(document.getElementById("legend"));
const plots = document.getElementById("plots");
const charts = [rate, itl, memory, roofline].map((kind) => new Chart(kind, plots));
const drawAll = () => charts.forEach((chart) => chart.draw());
drawAll();
new ResizeObserver(() => charts.forEach((chart) => chart.fit())).observe(plots);
dark.addEventListener("change", drawAll);
print.addEventListener("change", drawAll);

// Puts the pictures into the places that the page has for them.
const GROUPS = new Map(); // one time axis per log

function groupOf(log) {
  if (!GROUPS.has(log)) GROUPS.set(log, new Group());
  return GROUPS.get(log);
}

function size(a) { return Math.sqrt(a.reduce((sum, x) => sum + x * x, 0) / a.length); }
function minus(a, b) { return a.map((x, i) => x - b[i]); }
function plus(a, b, factor) { return a.map((x, i) => x + factor * b[i]); }

const MAKERS = {
  effort(host, { log, joint }) {
    const one = DATA.logs[log];
    const s = one.series[joint];
    const [t, y, hat, std, other] = ["t", "measured", "predicted", "std", "other"].map((key) => numbers(s[key]));
    const layers = [
      { kind: "band", x: t, low: plus(hat, std, -2), high: plus(hat, std, 2), colour: "band", name: "band" },
      { kind: "line", x: t, y, colour: "measured", width: 2.6, label: "measured", name: "measured" },
    ];
    if (s.raw) layers.splice(1, 0, { kind: "line", x: numbers(one.raw_t), y: numbers(s.raw), colour: "muted", width: 0.8, label: "raw", name: "raw", loose: true, zoomed: true });
    if (other) layers.push({ kind: "line", x: t, y: other, colour: "orange", width: 1, label: one.labels.other, name: "other" });
    layers.push({ kind: "line", x: t, y: hat, colour: "blue", width: 1.2, label: one.labels.predicted, name: "predicted" });
    const [was, is] = [one.labels.other, one.labels.predicted];
    const named = was.length + is.length <= 24 ? [`${was} ${s.before}`, `${is} ${s.after}`] : [s.before, s.after]; // a phone is narrow
    const title = `${one.joints[joint]}${s.before === null ? "" : `   ${named.join(" → ")}`}`;
    return new Plot(host, { layers, title, ylabel: one.units[joint], group: groupOf(log), xname: "t [s]" }, 170);
  },
  residual(host, { log, joint }) {
    const one = DATA.logs[log];
    const s = one.series[joint];
    const [t, y, hat, std, other] = ["t", "measured", "predicted", "std", "other"].map((key) => numbers(s[key]));
    const zero = std.map(() => 0);
    const layers = [{ kind: "band", x: t, low: plus(zero, std, -2), high: plus(zero, std, 2), colour: "band", name: "band", loose: true }];
    if (other && size(minus(y, other)) < 5 * size(minus(y, hat))) { // a much larger one would hide this one
      layers.push({ kind: "line", x: t, y: minus(y, other), colour: "orange", width: 0.9, label: one.labels.other, name: "other" });
    }
    layers.push({ kind: "line", x: t, y: minus(y, hat), colour: "blue", width: 0.9, label: "residual", name: "predicted" });
    return new Plot(host, { layers, xlabel: "", ylabel: "residual", group: groupOf(log), xname: "t [s]" }, 100);
  },
  distribution(host, { log, joint }) {
    const r = DATA.logs[log].residual[joint];
    const x = Float32Array.from(r.counts, (_, i) => -4 + ((i + 0.5) * 8) / r.counts.length);
    const grid = Float32Array.from({ length: 81 }, (_, i) => -4 + i / 10);
    const normal = grid.map((z) => Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI));
    const layers = [{ kind: "bars", x, y: r.counts, colour: "band" }, { kind: "line", x: grid, y: normal, colour: "ink", width: 1 }];
    const explain = (at) => [`${text(at, 3)} deviations`, `density ${text(r.counts[Math.max(0, Math.min(r.counts.length - 1, Math.floor(((at + 4) / 8) * r.counts.length)))], 3)}`];
    return new Plot(host, { layers, xlabel: "residual / predicted deviation", title: DATA.logs[log].joints[joint], bare: true, explain }, 170);
  },
  correlation(host, { log, joint }) {
    const r = DATA.logs[log].residual[joint];
    const x = Float32Array.from(r.lags, (_, i) => i * r.step);
    const edge = Float32Array.from([0, x[x.length - 1] || 1]);
    const layers = [
      { kind: "band", x: edge, low: [-r.white, -r.white], high: [r.white, r.white], colour: "band" },
      { kind: "stems", x, y: r.lags, colour: "blue", label: "correlation" },
    ];
    return new Plot(host, { layers, xlabel: "lag [s]", ylim: [-1.05, 1.05], xname: "lag [s]" }, 170);
  },
  scatter(host, { log, joint }) {
    const one = DATA.logs[log];
    const [y, hat] = ["measured", "predicted"].map((key) => numbers(one.series[joint][key]));
    const step = Math.max(1, Math.floor(y.length / 2000));
    const pick = [...y.keys()].filter((i) => i % step === 0);
    const layers = [{ kind: "dots", x: pick.map((i) => hat[i]), y: pick.map((i) => y[i] - hat[i]), colour: "blue", width: 1.2, alpha: 0.5, label: "" }];
    return new Plot(host, { layers, xlabel: `predicted effort [${one.units[joint]}]`, ylabel: "residual", pad: 0.03 }, 170);
  },
  parameters(host) {
    const p = DATA.parameters;
    const x = Float32Array.from(p.names, (_, i) => i);
    const layers = [
      { kind: "spans", x, low: p.low, high: p.high, colour: "blue" },
      { kind: "dots", x, y: p.description, colour: "orange", width: 4, mark: "diamond" },
      { kind: "dots", x, y: p.value, colour: "blue", width: 3 },
    ];
    if (p.truth) layers.push({ kind: "dots", x, y: p.truth, colour: "green", width: 2.4 });
    const explain = (at) => p.lines[Math.max(0, Math.min(p.names.length - 1, Math.round(at)))];
    return new Plot(host, { layers, ylabel: "share of the larger one", ylim: [-1.35, 1.35], pad: 0.02, nolabels: true, explain }, 210);
  },
  truth(host) {
    const p = DATA.truth;
    const x = Float32Array.from(p.z, (_, i) => i);
    const layers = [
      { kind: "band", x: [-0.5, p.z.length - 0.5], low: [-2, -2], high: [2, 2], colour: "band" },
      { kind: "stems", x, y: p.z, colour: "green" },
      { kind: "dots", x, y: p.z, colour: "green", width: 3 },
    ];
    const explain = (at) => { const i = Math.max(0, Math.min(p.z.length - 1, Math.round(at))); return [p.names[i], `error ${text(p.z[i], 3)} deviations`]; };
    return new Plot(host, { layers, ylabel: "error / std", ylim: [-6, 6], nolabels: true, explain }, 180);
  },
  singular(host) {
    const y = DATA.singular;
    const x = y.map((_, i) => i + 1);
    const layers = [{ kind: "line", x, y, colour: "blue", width: 1 }, { kind: "dots", x, y, colour: "blue", label: "singular value" }];
    return new Plot(host, { layers, xlabel: "number", log: true, pad: 0.02, xname: "number" }, 210);
  },
  limits(host, { log, joint }) {
    const one = DATA.logs[log];
    const s = one.series[joint];
    const [t, y] = [numbers(s.t), numbers(s.y)];
    const edge = [t[0], t[t.length - 1]];
    const layers = [{ kind: "line", x: t, y, colour: "blue", width: 1.4, label: one.joints[joint] }];
    if (s.high !== null) layers.unshift({ kind: "band", x: edge, low: [s.low, s.low], high: [s.high, s.high], colour: "band" });
    return new Plot(host, { layers, title: s.title, ylabel: one.units[joint], group: groupOf(0), xlabel: "", xname: "t [s]" }, 130);
  },
  covariance(host) { return new Heat(host, DATA.covariance); },
  robot(host, { log }) { return new Robot(host, DATA.scene, DATA.logs[log], groupOf(log)); },
};

/** A matrix of correlations: every cell has its colour, names appear on hover. */
class Heat extends Picture {
  constructor(host, { names, values }) {
    super(host, 100);
    this.names = names;
    this.values = numbers(values, Int8Array);
    this.canvas.addEventListener("pointermove", (e) => {
      const [j, i] = [e.offsetX, e.offsetY].map((p, k) => Math.floor((p - (k ? 4 : this.left)) / this.cell));
      const n = this.names.length;
      if (i < 0 || j < 0 || i >= n || j >= n) { this.hush(); return; }
      this.say(e.offsetX, e.offsetY, [this.names[i], this.names[j], `correlation ${text(this.values[i * n + j] / 100, 2)}`]);
    });
    this.canvas.addEventListener("pointerleave", () => this.hush());
    this.size();
    this.canvas.style.height = this.height + "px";
  }
  size() {
    const n = this.names.length;
    const width = this.host.clientWidth || 900;
    this.left = width > 500 ? 120 : 4;
    this.cell = Math.max(1.5, Math.min(14, (width - this.left - 4) / n));
    this.height = 8 + this.cell * n;
  }
  draw() { this.size(); super.draw(); }
  paint(g) {
    const c = colours();
    const n = this.names.length;
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        const r = this.values[i * n + j] / 100;
        g.fillStyle = c.soft;
        g.globalAlpha = 1;
        const [x, y, s] = [this.left + j * this.cell, 4 + i * this.cell, this.cell - (this.cell > 5 ? 0.6 : 0)];
        g.fillRect(x, y, s, s);
        g.globalAlpha = Math.abs(r);
        g.fillStyle = r > 0 ? c.orange : c.blue;
        g.fillRect(x, y, s, s);
      }
    }
    g.globalAlpha = 1;
    if (this.left < 100 || this.cell < 9) return;
    g.fillStyle = c.muted;
    g.textAlign = "right";
    g.textBaseline = "middle";
    g.font = "9.5px system-ui, sans-serif";
    this.names.forEach((name, i) => g.fillText(name.length > 20 ? name.slice(0, 19) + "…" : name, this.left - 5, 4 + (i + 0.5) * this.cell));
  }
}

function toggles() {
  for (const chip of document.querySelectorAll("button[data-layer]")) {
    chip.addEventListener("click", () => {
      const name = chip.dataset.layer;
      if (HIDDEN.has(name)) HIDDEN.delete(name); else HIDDEN.add(name);
      for (const same of document.querySelectorAll(`button[data-layer="${name}"]`)) same.setAttribute("aria-pressed", String(!HIDDEN.has(name)));
      redraw();
    });
  }
  for (const chip of document.querySelectorAll("button[data-joint]")) {
    chip.addEventListener("click", () => {
      const off = chip.getAttribute("aria-pressed") === "true";
      chip.setAttribute("aria-pressed", String(!off));
      document.getElementById(chip.getAttribute("aria-controls")).hidden = off;
    });
  }
  for (const button of document.querySelectorAll("button[data-reset]")) {
    button.addEventListener("click", () => groupOf(Number(button.dataset.reset)).zoom(null));
  }
}

for (const host of document.querySelectorAll(".plot")) {
  const { plot, log, joint } = host.dataset;
  MAKERS[plot](host, { log: Number(log), joint: Number(joint) });
}
for (const table of document.querySelectorAll("main table")) sortable(table);
toggles();
themes();
document.documentElement.dataset.ready = "yes";

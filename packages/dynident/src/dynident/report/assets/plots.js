// Curves, bars and dots on a canvas: zoom, hover, and time axes that move together.

/** Plots that share their horizontal range and their cursor. */
class Group {
  constructor() { this.range = null; this.cursor = null; this.members = []; this.listeners = []; }
  zoom(range) { this.range = range; for (const m of this.members) { m.hush(); m.later(); } }
  point(at, by = null) {
    this.cursor = at;
    for (const m of this.members) m.later();
    for (const listener of this.listeners) listener(at, by);
  }
}

function below(x, value) { // last index with x[i] <= value
  let [low, high] = [0, x.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (x[middle] <= value) low = middle; else high = middle - 1;
  }
  return low;
}

function nearest(x, value) {
  const i = below(x, value);
  return i + 1 < x.length && Math.abs(x[i + 1] - value) < Math.abs(x[i] - value) ? i + 1 : i;
}

/**
 * One pair of axes.
 *
 * spec: {layers, xlabel, ylabel, title, group, log, ylim, xticks, explain}; a layer is {kind, x, y, low, high, colour, width,
 * label, name, loose}, where kind is line, band, dots, stems, bars or spans (error bars); the vertical range is that of the layers
 * that are not loose.
 */
class Plot extends Picture {
  constructor(host, spec, height) {
    super(host, height);
    Object.assign(this, spec);
    this.group = spec.group || new Group();
    this.group.members.push(this);
    this.box = { left: 62, right: 10, top: spec.title ? 22 : 8, bottom: spec.xlabel === undefined ? 8 : spec.xlabel ? 34 : 20 };
    this.full = this.extent();
    this.interact();
  }
  shown() { return this.layers.filter((layer) => !layer.name || !HIDDEN.has(layer.name)); }
  extent() {
    let [low, high] = [Infinity, -Infinity];
    for (const layer of this.layers) {
      for (const x of [layer.x[0], layer.x[layer.x.length - 1]]) { low = Math.min(low, x); high = Math.max(high, x); }
      if (layer.kind === "dots" || layer.kind === "spans") for (const x of layer.x) { low = Math.min(low, x); high = Math.max(high, x); }
    }
    const pad = this.pad === undefined ? 0 : this.pad * (high - low || 1);
    return high > low ? [low - pad, high + pad] : [low - 0.5, high + 0.5];
  }
  vertical(from, to) {
    if (this.ylim) return this.ylim;
    let [low, high] = [Infinity, -Infinity];
    const shown = this.shown();
    // Where a joint turns the band of its friction is hundreds of times the residual: it may leave the picture.
    const leads = (layer) => !layer.loose || (layer.zoomed && this.group.range);
    const leading = shown.some(leads) ? shown.filter(leads) : shown;
    for (const layer of leading) {
      const ordered = layer.kind === "line" || layer.kind === "band";
      const first = ordered ? below(layer.x, from) : 0;
      for (let i = first; i < layer.x.length && (!ordered || layer.x[i] <= to); i++) {
        const [a, b] = layer.low ? [layer.low[i], layer.high[i]] : [layer.y[i], layer.y[i]];
        if (a < low) low = a;
        if (b > high) high = b;
      }
    }
    if (!(high >= low)) return [0, 1];
    if (this.log) return [low / 1.3, high * 1.3];
    const pad = 0.06 * (high - low) || Math.abs(high) * 0.1 || 1;
    return [low - pad, high + pad];
  }
  paint(g, width, height) {
    const c = colours();
    const b = this.box;
    const [x0, x1] = this.group.range || this.full;
    const [y0, y1] = this.vertical(x0, x1);
    const bend = this.log ? Math.log10 : (y) => y;
    const [u0, u1] = [bend(y0), bend(y1)];
    const [w, h] = [width - b.left - b.right, height - b.top - b.bottom];
    this.px = (x) => b.left + ((x - x0) / (x1 - x0)) * w;
    this.py = (y) => b.top + h - ((bend(y) - u0) / (u1 - u0)) * h;
    this.ux = (p) => x0 + ((p - b.left) / w) * (x1 - x0);
    this.axes(g, c, [x0, x1], [y0, y1], w, h);
    g.save();
    g.beginPath();
    g.rect(b.left, b.top - 1, w, h + 2);
    g.clip();
    for (const layer of this.shown()) this[layer.kind](g, layer, c, x0, x1, w);
    if (this.dragged) {
      const [from, to] = this.dragged;
      g.globalAlpha = 0.15;
      g.fillStyle = c.blue;
      g.fillRect(Math.min(from, to), b.top, Math.abs(to - from), h);
      g.globalAlpha = 1;
    }
    const at = this.group.cursor;
    if (at !== null && at >= x0 && at <= x1) {
      g.strokeStyle = c.muted;
      g.lineWidth = 1;
      g.setLineDash([3, 3]);
      g.beginPath(); g.moveTo(this.px(at), b.top); g.lineTo(this.px(at), b.top + h); g.stroke();
      g.setLineDash([]);
    }
    g.restore();
  }
  axes(g, c, xs, ys, w, h) {
    const b = this.box;
    const bottom = b.top + h;
    g.lineWidth = 1;
    g.textBaseline = "middle";
    const marks = this.log ? decades(ys[0], ys[1]) : ticks(ys[0], ys[1], Math.max(2, h / 32));
    for (const y of marks) {
      const p = Math.round(this.py(y)) + 0.5;
      g.strokeStyle = c.line;
      g.beginPath(); g.moveTo(b.left, p); g.lineTo(b.left + w, p); g.stroke();
      g.fillStyle = c.muted;
      g.textAlign = "right";
      if (!this.bare) g.fillText(text(y, 3), b.left - 6, p);
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const x of this.nolabels ? [] : ticks(xs[0], xs[1], w / 75)) {
      const p = Math.round(this.px(x)) + 0.5;
      g.strokeStyle = c.line;
      g.beginPath(); g.moveTo(p, b.top); g.lineTo(p, bottom); g.stroke();
      g.fillStyle = c.muted;
      if (this.xlabel !== undefined) g.fillText(text(x, 6), p, bottom + 4);
    }
    g.fillStyle = c.muted;
    if (this.xlabel) g.fillText(this.xlabel, b.left + w / 2, bottom + 18);
    if (this.ylabel) {
      g.save();
      g.translate(11, b.top + h / 2);
      g.rotate(-Math.PI / 2);
      g.textBaseline = "middle";
      g.fillText(this.ylabel, 0, 0);
      g.restore();
    }
    if (this.title) {
      g.fillStyle = c.ink;
      g.textAlign = "left";
      g.font = "600 12px system-ui, sans-serif";
      g.fillText(this.title, b.left, 4);
      g.font = "11px system-ui, sans-serif";
    }
  }
  // Where more samples than pixels are visible, every column of pixels gets its least and largest value: no peak is lost.
  line(g, layer, c, x0, x1, w) {
    const { x, y } = layer;
    const [first, last] = [Math.max(0, below(x, x0)), Math.min(x.length - 1, below(x, x1) + 1)];
    g.strokeStyle = c[layer.colour];
    g.lineWidth = layer.width || 1.2;
    g.lineJoin = "round";
    g.beginPath();
    if (last - first > 4 * w) {
      let column = null;
      let [low, high] = [0, 0];
      for (let i = first; i <= last; i++) {
        const p = Math.round(this.px(x[i]));
        if (p !== column) {
          if (column !== null) { g.lineTo(column, this.py(low)); g.lineTo(column, this.py(high)); }
          column = p;
          low = high = y[i];
        } else if (y[i] < low) low = y[i]; else if (y[i] > high) high = y[i];
      }
      if (column !== null) { g.lineTo(column, this.py(low)); g.lineTo(column, this.py(high)); }
    } else {
      for (let i = first; i <= last; i++) g.lineTo(this.px(x[i]), this.py(y[i]));
    }
    g.stroke();
  }
  band(g, layer, c, x0, x1, w) {
    const { x, low, high } = layer;
    const [first, last] = [Math.max(0, below(x, x0)), Math.min(x.length - 1, below(x, x1) + 1)];
    const step = Math.max(1, Math.floor((last - first) / (2 * w)));
    g.fillStyle = c[layer.colour];
    g.beginPath();
    for (let i = first; i <= last; i += step) g.lineTo(this.px(x[i]), this.py(high[i]));
    for (let i = last; i >= first; i -= step) g.lineTo(this.px(x[i]), this.py(low[i]));
    g.fill();
  }
  dots(g, layer, c) {
    g.fillStyle = c[layer.colour];
    const r = layer.width || 2.6;
    g.globalAlpha = layer.alpha || 1;
    for (let i = 0; i < layer.x.length; i++) {
      const [p, q] = [this.px(layer.x[i]), this.py(layer.y[i])];
      g.beginPath();
      if (layer.mark === "diamond") { g.moveTo(p, q - r); g.lineTo(p + r, q); g.lineTo(p, q + r); g.lineTo(p - r, q); } else g.arc(p, q, r, 0, 7);
      g.fill();
    }
    g.globalAlpha = 1;
  }
  stems(g, layer, c) {
    g.strokeStyle = c[layer.colour];
    g.lineWidth = 1.6;
    const zero = this.py(0);
    g.beginPath();
    for (let i = 0; i < layer.x.length; i++) { const p = this.px(layer.x[i]); g.moveTo(p, zero); g.lineTo(p, this.py(layer.y[i])); }
    g.stroke();
  }
  spans(g, layer, c) {
    g.strokeStyle = c[layer.colour];
    g.lineWidth = 1.2;
    g.beginPath();
    for (let i = 0; i < layer.x.length; i++) { const p = this.px(layer.x[i]); g.moveTo(p, this.py(layer.low[i])); g.lineTo(p, this.py(layer.high[i])); }
    g.stroke();
  }
  bars(g, layer, c) {
    const zero = this.py(0);
    const step = layer.x[1] - layer.x[0];
    g.fillStyle = c[layer.colour];
    for (let i = 0; i < layer.x.length; i++) {
      const [from, to] = [this.px(layer.x[i] - step / 2), this.px(layer.x[i] + step / 2)];
      g.fillRect(from, this.py(layer.y[i]), Math.max(1, to - from - 0.5), zero - this.py(layer.y[i]));
    }
  }
  interact() {
    const canvas = this.canvas;
    const place = (event) => event.offsetX;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.px) return;
      canvas.setPointerCapture(event.pointerId);
      if (event.shiftKey) this.panned = [place(event), ...(this.group.range || this.full)];
      else this.dragged = [place(event), place(event)];
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.px) return;
      const p = place(event);
      if (this.dragged) { this.dragged[1] = p; this.later(); return; }
      if (this.panned) {
        const [from, low, high] = this.panned;
        const shift = ((p - from) / (this.width - this.box.left - this.box.right)) * (high - low);
        this.group.zoom([low - shift, high - shift]);
        return;
      }
      const at = this.ux(p);
      this.group.point(at, this);
      this.hover(p, event.offsetY, at);
    });
    canvas.addEventListener("pointerup", () => {
      const dragged = this.dragged;
      this.dragged = this.panned = null;
      if (dragged && Math.abs(dragged[1] - dragged[0]) > 5) this.group.zoom([this.ux(Math.min(...dragged)), this.ux(Math.max(...dragged))]);
      else this.later();
    });
    canvas.addEventListener("pointerleave", () => { this.hush(); this.group.point(null, this); });
    canvas.addEventListener("dblclick", () => this.group.zoom(null));
    canvas.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey) || !this.px) return; // plain scrolling stays with the page
      event.preventDefault();
      const [low, high] = this.group.range || this.full;
      const at = this.ux(place(event));
      const factor = Math.exp(0.002 * event.deltaY);
      const next = [at - (at - low) * factor, at + (high - at) * factor];
      this.group.zoom(next[1] - next[0] >= this.full[1] - this.full[0] ? null : next);
    }, { passive: false });
  }
  hover(p, q, at) {
    if (this.explain) {
      const lines = this.explain(at, this);
      if (lines) this.say(p, q, lines); else this.hush();
      return;
    }
    const c = colours();
    const lines = [];
    let when = at;
    for (const layer of this.shown()) {
      if (!layer.label) continue;
      const i = nearest(layer.x, at);
      when = layer.x[i];
      lines.push([c[layer.colour], `${layer.label} ${text(layer.y[i])}`]);
    }
    if (lines.length) this.say(p, q, [`${this.xname || "x"} ${text(when, 6)}`, ...lines]);
  }
}

function decades(low, high) {
  const found = [];
  for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++) {
    for (const m of high / low > 1e4 ? [1] : [1, 2, 5]) if (m * 10 ** k >= low && m * 10 ** k <= high) found.push(m * 10 ** k);
  }
  return found;
}

const HIDDEN = new Set(); // names of layers that are switched off

// The robot along a log: links as lines, joints as dots coloured by their residual, orbit by dragging.
class Robot extends Picture {
  constructor(host, scene, log, group) {
    super(host, 400);
    this.scene = scene;
    this.log = log;
    this.group = group;
    this.points = numbers(log.motion.points);
    this.t = numbers(log.motion.t);
    this.load = log.motion.load ? numbers(log.motion.load) : null; // residual over its deviation, frame by joint
    this.count = scene.points.length;
    this.frame = 0;
    this.turn = [-0.9, 0.42];
    this.scale = 1;
    this.trail = scene.tool;
    this.measure();
    this.controls();
    this.orbit();
    group.listeners.push((at, by) => { if (at !== null && by !== this && !this.playing) this.show(this.when(at)); });
  }
  when(at) { // the frame, with its fraction, of a time
    const i = below(this.t, at);
    const last = this.t.length - 1;
    return i >= last ? last : Math.max(0, i + (at - this.t[i]) / (this.t[i + 1] - this.t[i]));
  }
  measure() {
    let low = [Infinity, Infinity, Infinity];
    let high = [-Infinity, -Infinity, -Infinity];
    for (let i = 0; i < this.points.length; i++) {
      const k = i % 3;
      low[k] = Math.min(low[k], this.points[i]);
      high[k] = Math.max(high[k], this.points[i]);
    }
    low = low.map((x) => Math.min(x, 0));
    high = high.map((x) => Math.max(x, 0));
    this.centre = low.map((x, k) => (x + high[k]) / 2);
    this.radius = 0.5 * Math.hypot(...high.map((x, k) => x - low[k])) || 0.5;
  }
  controls() {
    const bar = document.createElement("div");
    bar.className = "controls";
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.textContent = "▶ play";
    this.slider = document.createElement("input");
    this.slider.type = "range";
    this.slider.max = this.t.length - 1;
    this.slider.value = 0;
    this.slider.setAttribute("aria-label", "Time of the robot's pose");
    this.clock = document.createElement("span");
    this.clock.className = "note";
    bar.append(this.button, this.slider, this.clock);
    this.host.append(bar);
    this.button.addEventListener("click", () => (this.playing ? this.stop() : this.play()));
    this.slider.addEventListener("input", () => { this.stop(); this.show(Number(this.slider.value)); this.group.point(this.t[this.frame], this); });
    this.show(0);
  }
  play() {
    this.button.textContent = "❚❚ pause";
    if (this.frame >= this.t.length - 1) this.frame = 0;
    let [began, from] = [null, this.t[Math.floor(this.frame)]];
    const tick = (now) => {
      if (!this.playing) return;
      if (began === null) began = now;
      const at = from + (now - began) / 1000;
      this.show(this.when(at));
      this.group.point(at, this);
      if (this.frame >= this.t.length - 1) this.stop(); else this.playing = requestAnimationFrame(tick);
    };
    this.playing = requestAnimationFrame(tick);
  }
  stop() {
    if (this.playing) cancelAnimationFrame(this.playing);
    this.playing = null;
    this.button.textContent = "▶ play";
  }
  show(frame) {
    this.frame = frame;
    this.slider.value = frame;
    this.clock.textContent = `t = ${this.t[Math.floor(frame)].toFixed(2)} s of ${this.t[this.t.length - 1].toFixed(2)} s`;
    this.later();
  }
  orbit() {
    let from = null;
    this.canvas.addEventListener("pointerdown", (e) => { this.canvas.setPointerCapture(e.pointerId); from = [e.offsetX, e.offsetY, ...this.turn]; });
    this.canvas.addEventListener("pointermove", (e) => {
      if (from) {
        this.turn = [from[2] - (e.offsetX - from[0]) * 0.01, Math.max(-1.57, Math.min(1.57, from[3] + (e.offsetY - from[1]) * 0.01))];
        this.later();
        return;
      }
      const hit = this.marks && this.marks.find((m) => Math.hypot(m[0] - e.offsetX, m[1] - e.offsetY) < 9);
      if (hit) this.say(hit[0], hit[1], hit[2]); else this.hush();
    });
    this.canvas.addEventListener("pointerup", () => { from = null; });
    this.canvas.addEventListener("pointerleave", () => this.hush());
    this.canvas.addEventListener("dblclick", () => { this.turn = [-0.9, 0.42]; this.scale = 1; this.later(); });
    this.canvas.addEventListener("wheel", (e) => {
      if (!(e.ctrlKey || e.metaKey)) return;
      e.preventDefault();
      this.scale = Math.max(0.3, Math.min(8, this.scale * Math.exp(-0.002 * e.deltaY)));
      this.later();
    }, { passive: false });
  }
  project(x, y, z) {
    const [a, e] = this.turn;
    const [dx, dy, dz] = [x - this.centre[0], y - this.centre[1], z - this.centre[2]];
    const across = -Math.sin(a) * dx + Math.cos(a) * dy;
    const deep = Math.cos(a) * dx + Math.sin(a) * dy;
    const s = (this.scale * 0.7 * Math.min(this.width, this.height)) / this.radius;
    return [this.width / 2 + s * across, this.height / 2 - s * (Math.cos(e) * dz - Math.sin(e) * deep), s];
  }
  at(frame, point) { // a pose between two frames lies on the straight line between them
    const low = Math.floor(frame);
    const rest = frame - low;
    const k = 3 * (low * this.count + point);
    const next = rest > 0 ? k + 3 * this.count : k;
    return this.project(...[0, 1, 2].map((i) => (1 - rest) * this.points[k + i] + rest * this.points[next + i]));
  }
  paint(g) {
    const c = colours();
    this.floor(g, c);
    if (this.trail !== null) this.path(g, c);
    const size = this.project(0, 0, 0)[2];
    g.lineCap = "round";
    g.strokeStyle = c.blue;
    g.globalAlpha = 0.15;
    for (const [from, to, radius] of this.scene.capsules) {
      const [p, q] = [this.at(this.frame, from), this.at(this.frame, to)];
      g.lineWidth = 2 * radius * size;
      g.beginPath(); g.moveTo(p[0], p[1]); g.lineTo(q[0], q[1] + 0.01); g.stroke();
    }
    g.globalAlpha = 1;
    for (const [from, to, fixed] of this.scene.lines) {
      const [p, q] = [this.at(this.frame, from), this.at(this.frame, to)];
      g.strokeStyle = fixed ? c.line : c.measured;
      g.lineWidth = fixed ? 2 : Math.max(3, Math.min(9, 0.03 * this.radius * size));
      g.beginPath(); g.moveTo(p[0], p[1]); g.lineTo(q[0], q[1]); g.stroke();
    }
    g.setLineDash([5, 4]);
    g.lineWidth = 1.5;
    g.strokeStyle = c.orange;
    for (const [from, to] of this.scene.loops) {
      const [p, q] = [this.at(this.frame, from), this.at(this.frame, to)];
      g.beginPath(); g.moveTo(p[0], p[1]); g.lineTo(q[0], q[1]); g.stroke();
    }
    g.setLineDash([]);
    this.marks = [];
    this.scene.masses.forEach((body) => {
      const [x, y] = this.at(this.frame, body.point);
      g.strokeStyle = c.green;
      g.lineWidth = 1.4;
      g.beginPath(); g.arc(x, y, 3 + 8 * Math.cbrt(body.mass / this.scene.heaviest), 0, 7); g.stroke();
      this.marks.push([x, y, [`centre of mass of ${body.name}`, `${text(body.mass)} kg`]]);
    });
    const labels = [];
    this.scene.joints.forEach((joint) => {
      const [x, y] = this.at(this.frame, joint.point);
      const j = this.log.joints.indexOf(joint.name);
      const load = this.load && j >= 0 ? Math.abs(this.load[Math.floor(this.frame) * this.log.joints.length + j]) : 0;
      g.fillStyle = load > 2 ? c.orange : c.blue;
      g.strokeStyle = c.ground;
      g.lineWidth = 1.5;
      g.beginPath(); g.arc(x, y, 5 + Math.min(load, 4), 0, 7); g.fill(); g.stroke();
      this.marks.unshift([x, y, [joint.name, ...(j >= 0 ? [`residual ${text(load, 2)} standard deviations`] : [])]]);
      if (this.scene.joints.length <= 12) {
        g.fillStyle = c.muted;
        g.textAlign = "left";
        g.textBaseline = "middle";
        const label = joint.name.length > 18 ? joint.name.slice(0, 17) + "…" : joint.name;
        const left = x + 12, wide = g.measureText(label).width;
        const taken = (at) => labels.some(([l, w, p]) => Math.abs(p - at) < 12 && left < l + w && l < left + wide);
        let place = y - 8; // joints close to each other: names in the nearest free place below or above
        for (let k = 1; taken(place); k++) place = y - 8 + (k % 2 ? 1 : -1) * 12 * Math.ceil(k / 2);
        labels.push([left, wide, place]);
        g.fillText(label, left, place);
      }
    });
  }
  floor(g, c) {
    const step = 10 ** Math.floor(Math.log10(this.radius));
    const n = Math.min(12, Math.ceil(this.radius / step) + 1);
    const z = this.scene.floor;
    g.strokeStyle = c.line;
    g.lineWidth = 1;
    g.beginPath();
    for (let i = -n; i <= n; i++) {
      for (const [a, b] of [[this.project(i * step, -n * step, z), this.project(i * step, n * step, z)], [this.project(-n * step, i * step, z), this.project(n * step, i * step, z)]]) {
        g.moveTo(a[0], a[1]); g.lineTo(b[0], b[1]);
      }
    }
    g.stroke();
    const o = this.project(0, 0, 0);
    [["orange", [1, 0, 0]], ["green", [0, 1, 0]], ["blue", [0, 0, 1]]].forEach(([colour, v], k) => {
      const p = this.project(...v.map((x) => 0.16 * this.radius * x));
      g.strokeStyle = g.fillStyle = c[colour];
      g.lineWidth = 2;
      g.beginPath(); g.moveTo(o[0], o[1]); g.lineTo(p[0], p[1]); g.stroke();
      g.textAlign = "center";
      g.fillText("xyz"[k], p[0] + (p[0] - o[0]) * 0.2, p[1] + (p[1] - o[1]) * 0.2);
    });
  }
  path(g, c) {
    g.strokeStyle = c.blue;
    g.lineWidth = 1;
    for (const [from, to, alpha] of [[0, this.t.length - 1, 0.18], [Math.max(0, Math.floor(this.frame) - 25), Math.floor(this.frame), 0.8]]) {
      g.globalAlpha = alpha;
      g.beginPath();
      for (let f = from; f <= to; f++) { const p = this.at(f, this.trail); g.lineTo(p[0], p[1]); }
      g.stroke();
    }
    g.globalAlpha = 1;
  }
}

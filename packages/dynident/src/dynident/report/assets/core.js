// What all parts of the page share: the data, colours of the theme, ticks, tables that sort.
const DATA = JSON.parse(document.getElementById("data").textContent);
const PARTS = []; // everything that is drawn: has draw(), and knows by itself whether it is visible

/** Decode base64 into numbers; little-endian float32, or int8. */
const decoded = new Map();
function numbers(text, type = Float32Array) {
  if (text === null || text === undefined) return null;
  if (!decoded.has(text)) {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    decoded.set(text, new type(bytes.buffer));
  }
  return decoded.get(text);
}

let palette = null;
function colours() {
  if (!palette) {
    const style = getComputedStyle(document.documentElement);
    palette = {};
    for (const name of ["ink", "muted", "line", "soft", "ground", "blue", "orange", "green", "measured", "band", "ok", "bad"]) {
      palette[name] = style.getPropertyValue("--" + name).trim();
    }
  }
  return palette;
}

function redraw() {
  palette = null;
  for (const part of PARTS) part.later();
}

/** A canvas inside a host element that redraws itself when it becomes visible, is resized, or is asked to. */
class Picture {
  constructor(host, height) {
    this.host = host;
    this.height = height;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.canvas.style.height = height + "px"; // so that nothing moves when it is drawn
    host.prepend(this.canvas);
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    host.append(this.tip);
    this.visible = false;
    this.asked = false;
    PARTS.push(this);
    new IntersectionObserver((found) => {
      this.visible = found[found.length - 1].isIntersecting;
      if (this.visible) this.later();
    }, { rootMargin: "300px" }).observe(host);
    new ResizeObserver(() => this.later()).observe(host);
  }
  later() {
    if (this.asked || !this.visible) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }
  draw() {
    const width = this.host.clientWidth;
    if (!width) return;
    const ratio = Math.max(window.devicePixelRatio || 1, document.documentElement.dataset.printing ? 2 : 1);
    const [w, h] = [Math.round(width * ratio), Math.round(this.height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
      this.canvas.style.height = this.height + "px";
    }
    const g = this.canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, this.height);
    g.font = "11px system-ui, sans-serif";
    this.width = width;
    this.paint(g, width, this.height);
  }
  say(x, y, lines) {
    this.tip.replaceChildren(...lines.map((line) => {
      const row = document.createElement("div");
      row.textContent = Array.isArray(line) ? line[1] : line;
      if (Array.isArray(line)) { row.className = "key"; row.style.setProperty("--key", line[0]); }
      return row;
    }));
    this.tip.hidden = false;
    const left = x > this.width / 2 ? x - this.tip.offsetWidth - 14 : x + 14;
    this.tip.style.left = Math.max(0, left) + "px";
    this.tip.style.top = Math.max(0, Math.min(y, this.height - this.tip.offsetHeight)) + "px";
  }
  hush() { this.tip.hidden = true; }
}

/** Round numbers that divide a range into about so many steps. */
function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  let found = [];
  // One mark says nothing of the scale: a small picture gets a finer step rather than fewer than two.
  for (const step of [10, 5, 2, 1, 0.5, 0.2].map((m) => m * power)) {
    if (step < raw * 0.999 && found.length > 1) break;
    found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
  }
  return found;
}

function text(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  const shown = size !== 0 && (size >= 1e6 || size < 1e-4) ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
  return shown.replace("-", "−");
}

// ---- tables -------------------------------------------------------------------------------------------------------

function cellValue(cell) {
  const raw = cell ? cell.textContent.trim() : "";
  const plain = raw.replaceAll("−", "-").replaceAll("\u2009", "").replace(/\s*%$/, "").replace(/^[<>] /, "").split(" ± ")[0];
  if (plain === "∞") return Infinity;
  if (plain === "-∞") return -Infinity;
  return plain !== "" && Number.isFinite(Number(plain)) ? Number(plain) : plain === "–" ? null : raw.toLowerCase();
}

function order(a, b) {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1; // what is missing comes last
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  if (!body || body.rows.length < 3 || table.classList.contains("map")) return;
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    head.classList.add("sort");
    head.title = "Sort by this column";
    const act = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [cellValue(row.cells[column]), row]);
      rows.sort((a, b) => (a[0] === null || b[0] === null ? order(a[0], b[0]) : (down ? -1 : 1) * order(a[0], b[0])));
      body.append(...rows.map((pair) => pair[1]));
    };
    head.addEventListener("click", act);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); } });
  });
  if (body.rows.length < 20) return;
  const box = document.createElement("input");
  box.type = "search";
  box.placeholder = "filter rows";
  box.className = "filter";
  box.setAttribute("aria-label", "Filter the rows of this table");
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  table.parentElement.before(box);
}

// ---- theme and printing -------------------------------------------------------------------------------------------

function themes() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const name = () => { button.textContent = isDark() ? "light" : "dark"; };
  button.hidden = false;
  name();
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); redraw(); });
  dark.addEventListener("change", () => { name(); redraw(); });
  const printer = document.getElementById("print"); // browsers print to PDF files, too
  printer.hidden = false;
  printer.addEventListener("click", () => window.print());
  let before = null;
  const begin = () => {
    if (before) return;
    before = { theme: root.dataset.theme, closed: [...document.querySelectorAll("details:not([open])")] };
    root.dataset.theme = "light";
    root.dataset.printing = "yes";
    palette = null;
    for (const one of before.closed) one.open = true;
    for (const part of PARTS) part.draw();
  };
  const end = () => {
    if (!before) return;
    if (before.theme) root.dataset.theme = before.theme; else delete root.dataset.theme;
    delete root.dataset.printing;
    for (const one of before.closed) one.open = false;
    before = null;
    redraw();
  };
  window.addEventListener("beforeprint", begin);
  window.addEventListener("afterprint", end);
  matchMedia("print").addEventListener("change", (event) => (event.matches ? begin() : end()));
}

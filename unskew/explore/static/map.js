// The map: every row a point where its features put it. Drag to keep a part of it; the other filters dim what they leave out.
import { bytes, colour, make, small } from "./api.js";

export class FeatureMap {
  constructor({ canvas, legend, peek, brush, open }) {
    Object.assign(this, { canvas, legend, peek, brush, open });
    this.ids = new Uint32Array();
    this.xy = new Float32Array();
    this.codes = new Uint8Array();
    this.passes = null;
    this.box = null;
    this.words = [];
    this.pictures = true;
    let from = null;
    const place = (event) => {
      const area = canvas.getBoundingClientRect();
      return [(event.clientX - area.left) / area.width, 1 - (event.clientY - area.top) / area.height].map((v) => (v - 0.04) / 0.92);
    };
    canvas.addEventListener("pointerdown", (event) => {
      from = place(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const here = place(event);
      if (from) {
        this.box = [Math.min(from[0], here[0]), Math.max(from[0], here[0]), Math.min(from[1], here[1]), Math.max(from[1], here[1])];
        this.draw();
      } else this.glance(here, event);
    });
    canvas.addEventListener("pointerleave", () => (peek.hidden = true));
    canvas.addEventListener("pointerup", (event) => {
      if (!from) return;
      const [x, y] = place(event);
      const still = Math.hypot(x - from[0], y - from[1]) < 0.01;
      from = null;
      if (still) {
        this.box = null;
        brush(null);
      } else brush(this.box);
    });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  async load(column) {
    const raw = await bytes("map");
    const n = raw.byteLength / 12;
    this.ids = new Uint32Array(raw, 0, n);
    this.xy = new Float32Array(raw, 4 * n, 2 * n);
    await this.paint(column);
  }

  async paint(column) {
    this.words = column?.kind === "values" ? column.values : [];
    this.column = column;
    this.codes = column && this.ids.length ? new Uint8Array(await bytes(`colours/${encodeURIComponent(column.name)}`)) : new Uint8Array();
    this.key();
    this.draw();
  }

  key() {
    const items = this.words.slice(0, 8).map((word, k) => {
      const dot = make("i", {});
      dot.style.background = colour(k);
      return make("span", {}, dot, word);
    });
    if (this.column?.kind === "number") {
      const [low, high] = [this.column.edges[0], this.column.edges.at(-1)].map((v) => Number(v.toPrecision(3)));
      const [a, b] = [make("i", {}), make("i", {})];
      a.style.background = shade(0);
      b.style.background = shade(39);
      items.push(make("span", {}, a, `${low}`), make("span", {}, b, `${high}`));
    }
    this.legend.replaceChildren(...items);
  }

  show(bits) {
    const packed = Uint8Array.from(atob(bits), (c) => c.charCodeAt(0));
    this.passes = (k) => (packed[k >> 3] >> (7 - (k & 7))) & 1;
    if (packed.length * 8 < this.ids.length) this.passes = null;
    this.draw();
  }

  draw() {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
    if (!wide || !high) return;
    canvas.width = wide * ratio;
    canvas.height = high * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const pale = style.getPropertyValue("--pale-point");
    const size = this.ids.length > 5000 ? 2 : this.ids.length > 1000 ? 3 : 4;
    const x = (v) => (0.04 + 0.92 * v) * wide;
    const y = (v) => (1 - (0.04 + 0.92 * v)) * high;
    const number = this.column?.kind === "number";
    for (const wanted of [0, 1]) {
      for (let k = 0; k < this.ids.length; k++) {
        if ((this.passes ? this.passes(k) : 1) !== wanted) continue;
        pen.fillStyle = wanted ? (this.codes.length ? (number ? shade(this.codes[k]) : colour(this.codes[k])) : colour(0)) : pale;
        pen.fillRect(x(this.xy[2 * k]) - size / 2, y(this.xy[2 * k + 1]) - size / 2, size, size);
      }
    }
    if (this.box) {
      const [a, b, c, d] = this.box;
      pen.strokeStyle = style.getPropertyValue("--accent");
      pen.fillStyle = style.getPropertyValue("--brush");
      pen.lineWidth = 1.5;
      pen.fillRect(x(a), y(d), x(b) - x(a), y(c) - y(d));
      pen.strokeRect(x(a), y(d), x(b) - x(a), y(c) - y(d));
    }
  }

  glance([x, y], event) {
    let [best, nearest] = [-1, 0.0008];
    for (let k = 0; k < this.ids.length; k++) {
      const d = (this.xy[2 * k] - x) ** 2 + (this.xy[2 * k + 1] - y) ** 2;
      if (d < nearest) [best, nearest] = [k, d];
    }
    this.peek.hidden = best < 0 || !this.pictures;
    if (this.peek.hidden) return;
    const source = small(this.ids[best]);
    if (!this.peek.src.endsWith(source)) this.peek.src = source;
    const area = this.canvas.getBoundingClientRect();
    this.peek.style.left = `${Math.min(event.clientX - area.left + 12, area.width - 104)}px`;
    this.peek.style.top = `${Math.max(0, event.clientY - area.top - 108)}px`;
  }
}

const shade = (bin) => `hsl(${200 - (170 * Math.min(bin, 39)) / 39} 70% ${bin > 39 ? 80 : 45}%)`;

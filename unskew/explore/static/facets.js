// Values to choose from, histograms to brush, text to search: one box per column; each shows what the other filters leave.
import { make, number, shape } from "./api.js";

const SHORT = 6; // values shown before "more"
const WIDE = 220;
const HIGH = 52;

export class Facets {
  constructor(root, change) {
    Object.assign(this, { root, change });
    this.boxes = new Map();
    this.totals = {};
  }

  show(columns, counts, where) {
    if (!Object.keys(where).length) this.totals = counts;
    const names = new Set(columns.map((one) => one.name));
    for (const [name, box] of this.boxes) {
      if (!names.has(name)) {
        box.root.remove();
        this.boxes.delete(name);
      }
    }
    for (const one of columns) {
      const same = this.boxes.get(one.name);
      if (!same || same.column.kind !== one.kind) {
        same?.root.remove();
        this.boxes.set(one.name, this.box(one));
      }
      const box = this.boxes.get(one.name);
      box.column = one;
      this.root.append(box.root);
      box.draw(counts[one.name] ?? [], where[one.name]);
    }
  }

  box(column) {
    const clear = make("button", { class: "link", hidden: true, onclick: () => this.change(column.name, null) }, "clear");
    const body = make("div", { class: "body" });
    const open = column.origin !== "audit";
    const root = make("details", { class: `facet ${column.origin}`, open }, make("summary", {}, make("span", { class: "name" }, column.name), clear), body);
    const box = { column, root, body };
    const kinds = { values: this.values, number: this.histogram, text: this.search };
    const draw = kinds[column.kind].call(this, box);
    box.draw = (counts, condition) => {
      clear.hidden = !condition;
      root.classList.toggle("active", Boolean(condition));
      draw(counts, condition);
    };
    return box;
  }

  values(box) {
    let all = false;
    const draw = (counts, condition) => {
      const { name, values } = box.column;
      const chosen = new Set(condition?.in ?? []);
      const most = Math.max(1, ...counts);
      const order = values.map((_, k) => k).sort((a, b) => counts[b] - counts[a] || a - b);
      const shown = order.filter((k, place) => all || place < SHORT || chosen.has(values[k]));
      const lines = shown.map((k) => {
        const bar = make("span", { class: "fill" });
        bar.style.width = `${(100 * counts[k]) / most}%`;
        const toggle = () => {
          const next = new Set(chosen);
          if (!next.delete(values[k])) next.add(values[k]);
          this.change(name, next.size ? { in: [...next] } : null);
        };
        return make("button", { class: "value", "aria-pressed": chosen.has(values[k]), onclick: toggle, "data-value": values[k] }, bar, make("span", { class: "word" }, values[k]), make("span", { class: "n" }, number(counts[k] ?? 0)));
      });
      const more = order.length > SHORT ? make("button", { class: "link", onclick: () => { all = !all; draw(counts, condition); } }, all ? "fewer" : `${order.length - shown.length} more`) : null;
      box.body.replaceChildren(...lines, ...(more ? [more] : []));
    };
    return draw;
  }

  histogram(box) {
    const picture = shape("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "histogram", role: "img", preserveAspectRatio: "none" });
    const [low, high] = ["from", "to"].map((word) => make("input", { type: "number", step: "any", "aria-label": `${box.column.name} ${word}` }));
    box.body.append(picture, make("div", { class: "range" }, low, make("span", {}, "to"), high));
    const place = (event) => {
      const area = picture.getBoundingClientRect();
      const share = Math.max(0, Math.min(1, (event.clientX - area.left) / area.width));
      const { edges } = box.column;
      return edges[0] + share * (edges.at(-1) - edges[0]);
    };
    let from = null;
    const brush = shape("rect", { class: "brush", y: 0, height: HIGH, x: 0, width: 0 });
    const paint = (a, b) => {
      const { edges } = box.column;
      const x = (v) => (WIDE * (v - edges[0])) / (edges.at(-1) - edges[0]);
      brush.setAttribute("x", Math.max(0, x(Math.min(a, b))));
      brush.setAttribute("width", Math.max(0, Math.min(WIDE, x(Math.max(a, b))) - Math.max(0, x(Math.min(a, b)))));
    };
    picture.addEventListener("pointerdown", (event) => {
      from = place(event);
      picture.setPointerCapture(event.pointerId);
    });
    picture.addEventListener("pointermove", (event) => from !== null && paint(from, place(event)));
    picture.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const to = place(event);
      const { edges } = box.column;
      const least = (edges.at(-1) - edges[0]) / 100;
      const wanted = Math.abs(to - from) < least ? null : { between: [Math.min(from, to), Math.max(from, to)] };
      from = null;
      this.change(box.column.name, wanted);
    });
    const typed = () => {
      const { edges } = box.column;
      const ends = [low.value === "" ? edges[0] : Number(low.value), high.value === "" ? edges.at(-1) : Number(high.value)];
      this.change(box.column.name, low.value === "" && high.value === "" ? null : { between: ends });
    };
    low.addEventListener("change", typed);
    high.addEventListener("change", typed);
    const short = (v) => Number(v.toPrecision(3));
    return (counts, condition) => {
      const { edges, name } = box.column;
      const bins = counts.slice(0, edges.length - 1);
      const total = (this.totals[name] ?? bins).slice(0, bins.length);
      const most = Math.max(1, ...total);
      const step = WIDE / Math.max(1, bins.length);
      const bars = bins.flatMap((n, k) => {
        const bar = (value, kind) => shape("rect", { class: kind, x: k * step, width: Math.max(step - 0.6, 0.4), y: HIGH - (HIGH * value) / most, height: (HIGH * value) / most });
        return [bar(Math.min(total[k] ?? 0, most), "all"), bar(Math.min(n, most), "some")];
      });
      picture.replaceChildren(...bars, brush);
      picture.setAttribute("aria-label", `Histogram of ${name} from ${short(edges[0])} to ${short(edges.at(-1))}; drag to filter`);
      if (condition) paint(...condition.between);
      else brush.setAttribute("width", 0);
      [low.placeholder, high.placeholder] = [short(edges[0]), short(edges.at(-1))];
      low.value = condition ? short(condition.between[0]) : "";
      high.value = condition ? short(condition.between[1]) : "";
    };
  }

  search(box) {
    let later = 0;
    const input = make("input", { type: "search", placeholder: "contains …", "aria-label": `${box.column.name} contains` });
    input.addEventListener("input", () => {
      clearTimeout(later);
      later = setTimeout(() => this.change(box.column.name, input.value ? { contains: input.value } : null), 250);
    });
    box.body.append(input);
    return (_, condition) => {
      if (document.activeElement !== input) input.value = condition?.contains ?? "";
    };
  }
}

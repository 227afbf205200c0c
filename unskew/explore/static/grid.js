// A grid of pictures over any number of rows: only what is on the screen exists. Browsers cannot make an element taller than some
// ten million pixels, so above that the scroll bar moves in a smaller scale than the rows.
import { get, make, small } from "./api.js";

const PAGE = 120; // rows fetched at once
const TALLEST = 8_000_000; // pixels
const TEXT = 26; // pixels below a picture
const GAP = 8;

export class Grid {
  constructor(root, { select, open, selected }) {
    Object.assign(this, { root, select, open, selected });
    this.side = 120;
    this.total = 0;
    this.view = "";
    this.pages = new Map();
    this.cells = new Map();
    this.top = 0; // of the window, in pixels of the rows
    this.focus = 0;
    this.anchor = 0;
    this.stale = () => {};
    this.spacer = make("div", { class: "spacer", role: "presentation" });
    root.append(this.spacer);
    root.addEventListener("scroll", () => this.scrolled());
    root.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    root.addEventListener("keydown", (event) => this.pressed(event));
    new ResizeObserver(() => this.layout()).observe(root);
  }

  show(view, total, first, keep = false) {
    this.view = view;
    this.total = total;
    this.pages.clear();
    this.pages.set(0, first);
    this.focus = Math.min(this.focus, Math.max(0, total - 1));
    for (const cell of this.cells.values()) cell.remove();
    this.cells.clear();
    if (!keep) {
      this.top = 0;
      this.root.scrollTop = 0;
    }
    this.layout();
  }

  resize(side) {
    this.side = side;
    const first = Math.floor(this.top / this.high) * this.columns;
    this.layout();
    this.to(Math.floor(first / this.columns) * this.high);
  }

  layout() {
    const width = this.root.clientWidth - GAP;
    if (width <= 0) return;
    this.columns = Math.max(1, Math.floor(width / (this.side + GAP)));
    this.wide = Math.floor(width / this.columns) - GAP;
    this.high = this.wide + TEXT + GAP;
    const tall = Math.ceil(this.total / this.columns) * this.high + GAP;
    this.tall = tall;
    const shown = Math.min(tall, TALLEST);
    this.spacer.style.height = `${shown}px`;
    const room = this.root.clientHeight;
    this.scale = tall > shown ? (tall - room) / (shown - room) : 1;
    this.render();
  }

  scrolled() {
    if (this.own) {
      this.own = false;
    } else {
      this.top = this.root.scrollTop * this.scale;
    }
    this.render();
  }

  wheeled(event) {
    if (this.scale === 1 || event.ctrlKey) return; // the browser does it better
    event.preventDefault();
    this.to(this.top + event.deltaY * (event.deltaMode ? 40 : 1));
  }

  to(top) {
    this.top = Math.max(0, Math.min(top, this.tall - this.root.clientHeight));
    const wanted = Math.round(this.top / this.scale);
    if (Math.abs(wanted - this.root.scrollTop) >= 1) {
      this.own = this.scale !== 1;
      this.root.scrollTop = wanted;
    }
    this.render();
  }

  render() {
    if (!this.columns) return;
    const room = this.root.clientHeight;
    const first = Math.max(0, Math.floor(this.top / this.high) - 1) * this.columns;
    const last = Math.min(this.total, (Math.ceil((this.top + room) / this.high) + 1) * this.columns);
    for (const [k, cell] of this.cells) {
      if (k < first || k >= last) {
        cell.remove();
        this.cells.delete(k);
      }
    }
    const shift = this.root.scrollTop - this.top;
    for (let k = first; k < last; k++) {
      let cell = this.cells.get(k);
      if (!cell) {
        cell = this.blank(k);
        this.cells.set(k, cell);
        this.root.append(cell);
      }
      const x = GAP + (k % this.columns) * (this.wide + GAP);
      const y = GAP + Math.floor(k / this.columns) * this.high + shift;
      cell.style.transform = `translate(${x}px, ${y}px)`;
      cell.style.width = `${this.wide}px`;
      cell.style.height = `${this.high - GAP}px`;
    }
    for (let page = Math.floor(first / PAGE); page * PAGE < last; page++) this.fetch(page);
  }

  blank(k) {
    const cell = make("div", { class: "cell", role: "option", "aria-setsize": this.total, "aria-posinset": k + 1 });
    cell.addEventListener("click", (event) => this.clicked(event, k));
    cell.addEventListener("dblclick", () => cell.row && this.open(cell.row.id));
    const row = this.row(k);
    if (row) this.fill(cell, row);
    return cell;
  }

  row(k) {
    return this.pages.get(Math.floor(k / PAGE))?.[k % PAGE];
  }

  async fetch(page) {
    if (this.pages.has(page)) return;
    this.pages.set(page, []);
    const view = this.view;
    try {
      const found = await get(`rows?view=${view}&from=${page * PAGE}&count=${PAGE}`);
      if (view !== this.view) return;
      this.pages.set(page, found.rows);
      found.rows.forEach((row, k) => {
        const cell = this.cells.get(page * PAGE + k);
        if (cell) this.fill(cell, row);
      });
    } catch (error) {
      this.pages.delete(page);
      if (view === this.view) this.stale(error);
    }
  }

  fill(cell, row) {
    cell.row = row;
    cell.id = `row-${row.id}`;
    const shown = Object.entries(row.tags).filter(([, one]) => one.says === "yes" || one.hand !== null); // no is said only where it was marked
    const marks = shown.map(([name, one]) =>
      make("span", { class: `tag ${one.says} ${one.hand === null ? "" : "hand"}`, title: `${name}: ${one.says}${one.hand === null ? "" : ", by hand"}` }, name),
    );
    if (row.drop) marks.push(make("span", { class: "tag drop" }, "drop"));
    if (row.relabel) marks.push(make("span", { class: "tag new" }, `→ ${row.relabel}`));
    const name = row.path ?? `row ${row.id}`;
    const picture = this.pictures
      ? make("img", { src: small(row.id), alt: `${name}${row.label ? `, ${row.label}` : ""}`, decoding: "async", draggable: false })
      : make("span", { class: "no-picture" }, `${row.id}`);
    cell.replaceChildren(
      make("span", { class: "frame" }, picture),
      make("span", { class: "line" }, make("span", { class: "label" }, row.label ?? `row ${row.id}`), make("span", { class: "marks" }, ...marks, row.wrong ? make("span", { class: "wrong", title: "a model is wrong here" }, "✗") : null)),
      // Not a button: an option of a list must not hold another control. The keyboard has Enter for it.
      make("span", { class: "zoom", "aria-hidden": "true", title: "Enlarge", onclick: (event) => { event.stopPropagation(); this.open(row.id); } }, "⤢"),
    );
    this.mark(cell);
  }

  mark(cell) {
    if (!cell.row) return;
    const is = this.selected(cell.row.id);
    cell.classList.toggle("selected", is);
    cell.setAttribute("aria-selected", is);
  }

  marked() {
    for (const cell of this.cells.values()) this.mark(cell);
  }

  clicked(event, k) {
    const row = this.row(k);
    if (!row) return;
    if (event.shiftKey) {
      const [low, high] = [Math.min(this.anchor, k), Math.max(this.anchor, k)];
      const ids = [];
      for (let i = low; i <= high; i++) if (this.row(i)) ids.push(this.row(i).id);
      this.select(ids, true);
    } else {
      this.anchor = k;
      this.select([row.id]);
    }
    this.aim(k);
  }

  aim(k) {
    this.cells.get(this.focus)?.classList.remove("focus");
    this.focus = Math.max(0, Math.min(k, this.total - 1));
    const y = Math.floor(this.focus / this.columns) * this.high;
    if (y < this.top) this.to(y);
    else if (y + this.high > this.top + this.root.clientHeight) this.to(y + this.high - this.root.clientHeight);
    const cell = this.cells.get(this.focus);
    if (cell) {
      cell.classList.add("focus");
      this.root.setAttribute("aria-activedescendant", cell.id);
    }
  }

  pressed(event) {
    const far = this.columns * Math.max(1, Math.floor(this.root.clientHeight / this.high));
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, PageDown: far, PageUp: -far, Home: -Infinity, End: Infinity };
    const row = this.row(this.focus);
    if (event.key in steps) this.aim(steps[event.key] === Infinity ? this.total - 1 : this.focus + steps[event.key]);
    else if (event.key === " " && row) this.select([row.id]);
    else if (event.key === "Enter" && row) this.open(row.id);
    else return;
    event.preventDefault();
  }
}

// Name a pattern, mark rows that have it or lack it, let a reader spread it to all rows, answer its questions, see what it gives away.
import { get, make, number, percent, post, small } from "./api.js";

export class Tagging {
  constructor(root, hooks) {
    Object.assign(this, { root, ...hooks });
    this.current = "";
    this.spreads = {};
    this.measured = {};
    this.queue = [];
    this.busy = "";
    this.tags = [];
    this.marks = { drop: 0, relabel: 0 };
    this.name = make("input", { id: "tag-name", type: "text", placeholder: "watermark", maxLength: 40, autocomplete: "off", spellcheck: false, list: "tag-names" });
    this.name.addEventListener("input", () => this.buttons());
    this.name.addEventListener("keydown", (event) => event.key === "Enter" && this.mark(true));
  }

  show(tags, marks) {
    this.tags = tags;
    this.marks = marks;
    if (!this.tags.some((one) => one.name === this.current)) this.current = this.tags[0]?.name ?? "";
    if (!this.name.value && this.current) this.name.value = this.current;
    this.draw();
  }

  draw() {
    const about = this.about;
    if (!about) return;
    const parts = [make("div", { class: "bar" }, make("h2", {}, "Tag what you see"))];
    if (!about.write) parts.push(make("p", { class: "note" }, "Read-only. Start with ", make("code", {}, "--write"), " to tag, drop or relabel rows."));
    parts.push(this.marking(), ...this.cards(), this.cleaning());
    const kept = document.activeElement === this.name;
    this.root.replaceChildren(...parts);
    if (kept) this.name.focus();
    this.buttons();
  }

  marking() {
    const names = make("datalist", { id: "tag-names" }, ...this.tags.map((one) => make("option", { value: one.name })));
    this.has = make("button", { class: "main", id: "has", onclick: () => this.mark(true) }, "Has it");
    this.lacks = make("button", { id: "lacks", onclick: () => this.mark(false) }, "Lacks it");
    this.unmark = make("button", { id: "unmark", onclick: () => this.mark(null) }, "Unmark");
    this.chosen = make("p", { class: "chosen", role: "status" });
    const every = make("button", { class: "link", id: "select-all", onclick: () => this.all() }, "select all shown");
    const none = make("button", { class: "link", id: "select-none", onclick: () => this.none() }, "none");
    return make("div", { class: "marking" }, make("div", { class: "picked" }, this.chosen, every, none),
      make("label", { for: "tag-name" }, "Pattern"), make("div", { class: "line" }, this.name, names), make("div", { class: "line" }, this.has, this.lacks, this.unmark));
  }

  buttons() {
    if (!this.has) return;
    const n = this.count();
    this.chosen.textContent = n ? `${number(n)} selected` : "Click pictures to select them";
    const ready = this.about.write && n > 0 && this.name.value.trim() !== "" && !this.busy;
    for (const one of [this.has, this.lacks, this.unmark]) one.disabled = !ready;
    for (const one of this.root.querySelectorAll(".cleaning button, .cleaning select")) one.disabled = !this.about.write || n === 0;
  }

  async mark(value) {
    const tag = this.name.value.trim();
    if (this.has.disabled) return;
    await this.doing(`marking`, async () => {
      await post("tag", { tag, value, ...this.target() });
      this.current = tag;
      delete this.measured[tag];
      this.none();
    });
  }

  cards() {
    return this.tags.map((one) => {
      const open = one.name === this.current;
      const head = make("button", { class: "head", "aria-expanded": open, onclick: () => { this.current = open ? "" : one.name; this.name.value = one.name; this.draw(); } },
        make("strong", {}, one.name), make("span", {}, `${number(one.yes)} yes, ${number(one.no)} no by hand`));
      if (!open) return make("div", { class: "card" }, head);
      const spread = make("button", { class: "main spread", disabled: !this.about.write || one.yes < 3 || Boolean(this.busy), onclick: () => this.spread(one.name) }, one.spread ? "Spread again" : "Spread to all rows");
      const forget = make("button", { class: "link", disabled: !this.about.write, onclick: () => this.forget(one.name) }, "delete tag");
      const busy = this.busy ? make("p", { class: "note busy", role: "status" }, `${this.busy} …`) : null;
      const hint = one.yes < 3 ? make("p", { class: "note" }, `Mark at least 3 rows that have it, then spread.`) : null;
      return make("div", { class: "card open" }, head, make("div", { class: "line" }, spread, forget), hint, busy, ...this.said(one), ...this.questions(one), ...this.figures(one.name));
    });
  }

  said(one) {
    const last = this.spreads[one.name];
    const parts = [];
    if (one.spread) parts.push(make("p", { class: "said" }, make("strong", {}, percent(one.says_yes / one.rows)), ` of ${number(one.rows)} rows called yes`));
    if (last?.read_from?.length) parts.push(make("p", { class: "note" }, `Read from ${last.read_from.map((r) => r.what).join("; ")}.`));
    if (last?.agreement !== undefined && last.agreement !== null) parts.push(make("p", { class: "note" }, `On rows you marked, held out: area under the curve ${last.agreement.toFixed(2)}.`));
    return parts;
  }

  questions(one) {
    if (!this.queue.length || this.asking !== one.name) return [];
    const items = this.queue.map((row) => make("div", { class: "question", "data-row": row.id },
      make("img", { src: small(row.id), alt: row.path ?? `row ${row.id}`, onclick: () => this.open(row.id) }),
      make("div", { class: "line" }, make("button", { class: "yes", onclick: () => this.answer(row, true), "aria-label": `Yes, row ${row.id} has it` }, "Yes"), make("button", { class: "no", onclick: () => this.answer(row, false), "aria-label": `No, row ${row.id} lacks it` }, "No"))));
    return [make("p", { class: "ask" }, `Does it show ${one.name}? These would help most:`), make("div", { class: "queue" }, ...items)];
  }

  async answer(row, value) {
    const tag = this.asking;
    this.queue = this.queue.filter((one) => one.id !== row.id);
    this.draw();
    try {
      await post("tag", { tag, value, rows: [row.id] });
    } catch (error) {
      this.queue.push(row);
      this.say(error.message);
    }
    if (!this.queue.length) await this.spread(tag);
  }

  async spread(tag) {
    await this.doing("reading the rows", async () => {
      const found = await post("spread", { tag });
      this.spreads[tag] = found;
      this.asking = tag;
      this.queue = found.ask;
    });
    await this.measure(tag);
  }

  async measure(tag) {
    await this.doing("measuring", async () => {
      this.measured[tag] = await get(`measure/${encodeURIComponent(tag)}`);
    });
  }

  figures(tag) {
    const found = this.measured[tag];
    if (!found) return [make("button", { class: "measure", disabled: Boolean(this.busy), onclick: () => this.measure(tag) }, "What does it give away?")];
    const parts = [make("h3", {}, "What it gives away")];
    if (found.leakage) {
      const { dataset, low, high, chance } = found.leakage;
      const [bar, line, span] = [make("span", { class: "fill" }), make("span", { class: "chance", title: `chance ${percent(chance)}` }), make("span", { class: "span" })];
      const share = (value) => `${100 * value}%`;
      bar.style.width = share(dataset);
      line.style.left = share(chance);
      span.style.left = share(low);
      span.style.width = share(high - low);
      parts.push(make("p", { class: "figure leakage", "data-value": dataset }, make("span", {}, "Leakage"), make("strong", {}, percent(dataset)), make("small", {}, `${percent(low)} to ${percent(high)}; chance ${percent(chance)}`)), make("div", { class: "scale", "aria-hidden": "true" }, bar, span, line));
    } else parts.push(make("p", { class: "note" }, `Leakage: ${found.leakage_reason}`));
    if (found.association) {
      parts.push(make("p", { class: "figure" }, make("span", {}, "Association"), make("strong", {}, `V ${found.association.cramers_v?.toFixed(2) ?? "–"}`), make("small", {}, `${percent(found.association.share)} of the label's entropy; n ${number(found.association.n)}`)));
    } else if (found.association_reason) parts.push(make("p", { class: "note" }, `Association: ${found.association_reason}`));
    parts.push(...found.models.map((one) => this.model(one)));
    if (found.aligned) parts.push(make("p", { class: "note" }, found.aligned));
    const command = `unskew train ${this.about.words} --bias ${tag} --method group_dro --out robust`;
    parts.push(this.command("As a bias column of any verb", command));
    return parts;
  }

  model(one) {
    if (one.reason) return make("p", { class: "note" }, `${one.name}: ${one.reason}`);
    const cells = one.groups.filter((g) => g.n).map((g) => make("tr", { class: g.aligned === false ? "conflicting" : "", title: g.aligned === false ? "conflicting: the tag points to another class" : "" },
      make("td", {}, g.y), make("td", {}, typeof g.bias === "object" ? Object.values(g.bias).join(", ") : `${g.bias}`), make("td", {}, percent(g.accuracy)), make("td", {}, `${number(g.n)}${g.small ? " *" : ""}`)));
    return make("div", { class: "model" }, make("p", { class: "figure" }, make("span", {}, one.name), make("small", {}, `aligned ${percent(one.aligned)}, conflicting ${percent(one.conflicting)}`)),
      make("table", {}, make("thead", {}, make("tr", {}, ...["class", "tag", "accuracy", "n"].map((word) => make("th", { scope: "col" }, word)))), make("tbody", {}, ...cells)));
  }

  command(title, text) {
    const copy = make("button", { class: "link", onclick: async () => { await navigator.clipboard.writeText(text); copy.textContent = "copied"; } }, "copy");
    return make("div", { class: "command" }, make("p", { class: "note" }, `${title}: `, copy), make("code", {}, text));
  }

  cleaning() {
    const { classes, multi_label } = this.about;
    const label = make("select", { id: "new-label", "aria-label": "New label" }, ...classes.map((name) => make("option", { value: name }, name)));
    const act = (path, body) => () => this.doing("marking", async () => { await post(path, { ...body(), ...this.target() }); this.none(); });
    const parts = [make("h3", {}, "Rows that should not be learnt from"),
      make("div", { class: "line" }, make("button", { id: "drop", onclick: act("drop", () => ({ value: true })) }, "Drop"), make("button", { id: "keep", onclick: act("drop", () => ({ value: false })) }, "Keep"))];
    if (!multi_label) parts.push(make("div", { class: "line" }, label, make("button", { id: "relabel", onclick: act("relabel", () => ({ label: label.value })) }, "Relabel"), make("button", { id: "undo-label", onclick: act("relabel", () => ({ label: null })) }, "Undo")));
    if (this.marks.drop || this.marks.relabel) {
      parts.push(make("p", { class: "note" }, `${number(this.marks.drop)} to drop, ${number(this.marks.relabel)} relabelled.`));
      parts.push(this.command("Train without them", `unskew train ${this.about.words} --weights ${this.about.table} --out clean`));
    }
    return make("div", { class: "cleaning" }, ...parts);
  }

  async forget(tag) {
    await this.doing("deleting", async () => {
      await post("forget", { tag });
      this.name.value = "";
      this.queue = [];
    });
  }

  async doing(what, work) {
    this.busy = what;
    this.draw();
    try {
      await work();
    } catch (error) {
      this.say(error.message);
    }
    this.busy = "";
    await this.changed();
    this.draw();
  }
}

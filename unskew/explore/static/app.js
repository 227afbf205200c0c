// The page: what is filtered and selected, and who is told when it changes.
import { get, make, number, post } from "./api.js";
import { detail } from "./detail.js";
import { Facets } from "./facets.js";
import { Grid } from "./grid.js";
import { FeatureMap } from "./map.js";
import { Tagging } from "./tagging.js";

const $ = (id) => document.getElementById(id);
const state = { where: {}, sort: "", descending: false, view: "", rows: 0, map: -1, columns: [], chosen: new Set(), all: "" };
let about = null;
let asked = 0;

const selected = (id) => state.all !== "" || state.chosen.has(id);

const grid = new Grid($("grid"), {
  selected,
  select(ids, add = false) {
    if (state.all) state.chosen.clear();
    state.all = "";
    for (const id of ids) if (add || !state.chosen.delete(id)) state.chosen.add(id);
    picked();
  },
  open,
});
const facets = new Facets($("filters"), (name, condition) => {
  if (condition) state.where[name] = condition;
  else delete state.where[name];
  ask();
});
const map = new FeatureMap({
  canvas: $("points"), legend: $("legend"), peek: $("peek"), open,
  brush(box) {
    delete state.where["map x"];
    delete state.where["map y"];
    if (box) {
      state.where["map x"] = { between: [box[0], box[1]] };
      state.where["map y"] = { between: [box[2], box[3]] };
    }
    ask();
  },
});
const tagging = new Tagging($("tagging"), {
  open, say,
  count: () => (state.all ? state.rows : state.chosen.size),
  target: () => (state.all ? { view: state.all } : { rows: [...state.chosen] }),
  all() {
    state.all = state.view;
    picked();
  },
  none() {
    state.all = "";
    state.chosen.clear();
    picked();
  },
  changed: () => ask(true),
});

function picked() {
  grid.marked();
  tagging.buttons();
}

function say(text) {
  const line = $("said");
  line.textContent = text;
  line.hidden = false;
  clearTimeout(say.later);
  say.later = setTimeout(() => (line.hidden = true), 8000);
}

let shown = -1;
async function open(id) {
  shown = id;
  const step = (by) => {
    const ids = [...grid.cells.keys()].sort((a, b) => a - b);
    const here = ids.find((k) => grid.row(k)?.id === shown);
    const next = here === undefined ? undefined : grid.row(here + by);
    if (next) {
      grid.aim(here + by);
      open(next.id);
    }
  };
  try {
    await detail($("detail"), id, { pictures: about.pictures, step });
  } catch (error) {
    say(error.message);
  }
}

/** Ask for the rows that pass now; `keep` leaves the grid where it is. */
async function ask(keep = false) {
  const mine = ++asked;
  let found;
  try {
    found = await post("view", { where: state.where, sort: state.sort, descending: state.descending });
  } catch (error) {
    say(error.message);
    return;
  }
  if (mine !== asked) return; // another question is under way
  const same = keep && found.rows === state.rows;
  Object.assign(state, { view: found.view, rows: found.rows, columns: found.columns });
  if (state.all) state.all = found.view;
  $("count").textContent = `${number(found.rows)} of ${number(about.rows)} rows`;
  $("empty").hidden = found.rows > 0;
  if (!state.where["map x"]) map.box = null;
  facets.show(found.columns, found.counts, state.where);
  grid.show(found.view, found.rows, found.first, same);
  chips();
  choices();
  tagging.show(found.tags, found.marks);
  await mapped(found);
}

async function mapped(found) {
  const note = found.map.how || (found.map.working ? "Computing features …" : "");
  $("map-note").textContent = [note, found.map.note].filter(Boolean).join(" · ");
  if (found.map.version !== state.map && found.map.version > 0) {
    state.map = found.map.version;
    await map.load(column($("colour").value));
    $("map").dataset.version = state.map;
    if (!found.bits) return ask(true);
  } else if ($("colour").value && column($("colour").value)?.origin === "tag") {
    await map.paint(column($("colour").value));
  }
  if (found.bits) map.show(found.bits);
  clearTimeout(mapped.later);
  if (found.map.working) mapped.later = setTimeout(watch, 1500);
}

async function watch() {
  const now = await get("about").catch(() => null);
  if (now && (now.map.version !== state.map || !now.map.working)) ask(true);
  else if (now) mapped.later = setTimeout(watch, 1500);
}

const column = (name) => state.columns.find((one) => one.name === name);

function options(select, names, current) {
  const known = [...select.options].map((one) => one.value);
  const wanted = names.map(([value]) => value);
  if (known.join("\n") !== wanted.join("\n")) select.replaceChildren(...names.map(([value, word]) => make("option", { value }, word)));
  select.value = wanted.includes(current) ? current : wanted[0];
}

function choices() {
  const named = state.columns.map((one) => [one.name, one.name]);
  options($("sort"), [["", "as they come"], ...named], state.sort);
  const colours = state.columns.filter((one) => one.kind !== "text").map((one) => [one.name, one.name]);
  options($("colour"), colours, $("colour").value);
}

function chips() {
  const box = state.where["map x"];
  const items = Object.entries(state.where).filter(([name]) => name !== "map y").map(([name, condition]) => {
    const isMap = name === "map x" && box;
    const word = isMap ? "part of the map" : condition.in ? `${name}: ${condition.in.join(", ")}` : condition.between ? `${name}: ${condition.between.map((v) => Number(v.toPrecision(3))).join(" to ")}` : `${name} contains ${condition.contains}`;
    const away = () => {
      delete state.where[name];
      if (isMap) delete state.where["map y"];
      ask();
    };
    return make("button", { class: "chip", title: "Remove this filter", onclick: away }, make("span", {}, word), make("span", { "aria-hidden": "true" }, "×"));
  });
  $("chips").replaceChildren(...items);
}

function tab(name) {
  document.body.dataset.tab = name;
  for (const one of $("tabs").children) one.setAttribute("aria-current", one.dataset.to === name);
  grid.layout();
  map.draw();
}

$("sort").addEventListener("change", () => {
  state.sort = $("sort").value;
  ask();
});
$("direction").addEventListener("click", () => {
  state.descending = !state.descending;
  $("direction").textContent = state.descending ? "↑" : "↓";
  ask();
});
$("size").addEventListener("input", () => grid.resize(Number($("size").value)));
$("colour").addEventListener("change", () => map.paint(column($("colour").value)).catch((error) => say(error.message)));
$("clear-all").addEventListener("click", () => {
  state.where = {};
  ask();
});
for (const one of $("tabs").children) one.addEventListener("click", () => tab(one.dataset.to));
$("detail").addEventListener("click", (event) => event.target === $("detail") && $("detail").close());
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && about && ask(true)); // another browser may have tagged
grid.stale = () => ask(true);

async function start() {
  about = await get("about");
  tagging.about = about;
  grid.pictures = about.pictures;
  map.pictures = about.pictures;
  document.body.classList.toggle("pixels", about.side > 0 && about.side < 64);
  document.title = `${about.title} · unskew explore`;
  $("title").textContent = about.title;
  $("title").title = [about.source, ...about.results].join("\n");
  const small = matchMedia("(max-width: 900px)").matches;
  grid.side = small ? 100 : 120;
  $("size").value = grid.side;
  if (small && matchMedia("(max-width: 480px)").matches) facets.root.classList.add("narrow");
  tab("rows");
  await ask();
  document.body.dataset.ready = "yes";
}

start().catch((error) => say(error.message));

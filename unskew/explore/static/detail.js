// One row, as large as the window allows, with everything that is known of it.
import { get, large, make, small } from "./api.js";

export async function detail(dialog, id, { pictures, step }) {
  const row = await get(`row/${id}`);
  const name = row.path ?? `row ${row.id}`;
  const image = make("img", { src: large(id), alt: `${name}${row.label ? `, ${row.label}` : ""}` });
  image.addEventListener("error", () => (image.src = small(id)), { once: true });
  image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalWidth < 100));
  const facts = Object.entries(row.fields).map(([key, value]) => make("div", {}, make("dt", {}, key), make("dd", {}, typeof value === "number" ? `${Number(value.toPrecision(4))}` : `${value}`)));
  const close = make("button", { class: "icon close", "aria-label": "Close", onclick: () => dialog.close() }, "×");
  dialog.replaceChildren(
    make("div", { class: "picture" }, pictures ? image : make("p", { class: "note" }, "This row has no picture.")),
    make("div", { class: "facts" }, make("h2", {}, name), close, make("p", { class: "note" }, `row ${row.id}`), make("dl", {}, ...facts),
      make("div", { class: "line" }, make("button", { onclick: () => step(-1) }, "Previous"), make("button", { onclick: () => step(1) }, "Next"))),
  );
  if (!dialog.open) dialog.showModal();
}

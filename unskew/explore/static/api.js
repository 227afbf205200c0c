// Every address is relative to the page's own, which holds the token.

async function checked(answer) {
  if (answer.ok) return answer;
  let text = `${answer.status}`;
  try {
    text = (await answer.json()).error ?? text;
  } catch {
    // Not JSON: the status has to do.
  }
  throw Object.assign(new Error(text), { status: answer.status });
}

export async function get(path) {
  return (await checked(await fetch(`api/${path}`))).json();
}

export async function bytes(path) {
  return (await checked(await fetch(`api/${path}`))).arrayBuffer();
}

export async function post(path, body) {
  const asked = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await checked(await fetch(`api/${path}`, asked))).json();
}

export const small = (id) => `api/small/${id}`;
export const large = (id) => `api/large/${id}`;

/** An element with properties and children; text is always text. */
export function make(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(given)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key.startsWith("aria-") || key === "role" || key.startsWith("data-") || key === "for" || key === "list") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function shape(tag, given, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export const number = (value) => value.toLocaleString("en");
export const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);
export const COLOURS = ["#0f766e", "#d97706", "#7c3aed", "#2563eb", "#db2777", "#65a30d", "#b45309", "#0891b2", "#dc2626", "#4b5563"];
export const colour = (k) => COLOURS[k % COLOURS.length];

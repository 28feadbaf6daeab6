// Small helpers to build what is shown. Texts are always set as text, so nothing that comes in can become markup.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

/** Make an element: attributes by name, `text` for its words, `on` for listeners, `style` for custom properties. */
export function el(name, given = {}, ...children) {
  return fill(document.createElement(name), given, children);
}

/** Make an element of a drawing. */
export function svg(name, given = {}, ...children) {
  return fill(document.createElementNS(SVG, name), given, children);
}

function fill(element, { text, on = {}, style = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  for (const [property, value] of Object.entries(style)) element.style.setProperty(property, value);
  if (text !== undefined) element.textContent = text;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Change words only when they differ, so that screen readers and selections are left alone. */
export function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

const drawn = new WeakMap();

/** Draw a part anew only when its data differ from what it shows. */
export function draw(element, data, make) {
  const now = JSON.stringify(data);
  if (drawn.get(element) === now) return;
  drawn.set(element, now);
  const made = make(data);
  element.replaceChildren(...(Array.isArray(made) ? made : [made]));
}

/** Make a table; the first cell of each row heads it. */
export function table(heads, rows) {
  const head = el("tr", {}, ...heads.map((text) => el("th", { scope: "col", text })));
  const body = rows.map(([first, ...rest]) =>
    el("tr", {}, el("th", { scope: "row", text: first }), ...rest.map((text) => el("td", { text }))));
  return el("table", {}, el("thead", {}, head), el("tbody", {}, ...body));
}

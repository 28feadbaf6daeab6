// What is held, as a map of the categories: the larger the field, the more waits. A field opens into its parts.

import { $, draw, el, say, table } from "./dom.js";
import { squares } from "./squares.js";
import { brief, count, percent } from "./words.js";

const MOST = 24;
let opened = null;  // the category whose parts are shown
let data = { buffers: [], counts: { held: 0 } };
let watched = null;

export function showHeld(overview) {
  data = overview;
  const map = theMap();
  if (!watched) {
    watched = new ResizeObserver(() => place(map));
    watched.observe(map);
  }
  place(map);
  crumbs();
  draw($("held-table"), [data.buffers, data.counts.held], heldTable);
}

function theMap() {
  return $("held-map") ?? $("held").appendChild(el("div", { id: "held-map", class: "map", role: "group", "aria-labelledby": "held-title", on: { keydown: keys } }));
}

/** The fields to show: largest first, small ones together. */
function fields() {
  const chosen = opened === null ? data.buffers : data.buffers.find((one) => one.category === opened)?.parts ?? [];
  const sorted = chosen.filter((one) => one.held > 0).sort((one, other) => other.held - one.held);
  if (sorted.length <= MOST) return sorted;
  const rest = sorted.slice(MOST - 1);
  return [...sorted.slice(0, MOST - 1), { category: `${rest.length} others`, held: rest.reduce((sum, one) => sum + one.held, 0), others: true }];
}

const opens = (field) => opened === null && !field.others && field.parts?.length > 0;
const shortName = (category) => (opened !== null && category.startsWith(`${opened}/`) ? category.slice(opened.length + 1) : category);

/** Lay the fields out anew, keeping the elements, so that focus stays where it is. */
function place(map) {
  const found = fields();
  $("held-details").hidden = !data.buffers.length;
  if (!found.length || !map.clientWidth) return showEmpty(map, found);
  map.querySelector(".empty")?.remove();
  map.classList.remove("nothing");
  const [width, height] = [map.clientWidth, map.clientHeight];
  const total = found.reduce((sum, one) => sum + one.held, 0);
  const old = new Map([...map.children].map((child) => [child.dataset.key, child]));
  squares(found.map((one) => one.held), width, height).forEach((box, index) => {
    const field = found[index];
    const key = `${opens(field) ? "open" : "end"} ${field.category}`;
    const cell = old.get(key) ?? map.appendChild(makeCell(field, key));
    old.delete(key);
    dress(cell, field, { box, width, height, share: field.held / total, weight: Math.sqrt(field.held / found[0].held), index });
  });
  const focused = [...old.values()].includes(document.activeElement);
  for (const gone of old.values()) gone.remove();
  if (focused) map.querySelector("button")?.focus();
  return undefined;
}

function showEmpty(map, found) {
  if (found.length) return;
  const words = opened !== null ? "Nothing of this category is held any more." : data.counts.held
    ? "The method in force does not hold by category." : data.counts.accepted && !data.counts.queued
      ? "Nothing is held. All that came has left or was dropped." : "Nothing is held so far.";
  if (map.classList.contains("nothing") && map.textContent === words) return;
  map.classList.add("nothing");
  map.replaceChildren(el("p", { class: "empty", text: words }));
}

function makeCell(field, key) {
  const inside = [el("span", { class: "cell-name" }), el("span", { class: "cell-count" })];
  return opens(field)
    ? el("button", { type: "button", class: "cell", "data-key": key, on: { click: () => open(field.category) } }, ...inside)
    : el("div", { class: "cell", "data-key": key, role: "img" }, ...inside);
}

function dress(cell, field, { box, width, height, share, weight, index }) {
  const style = { "--x": box.x / width, "--y": box.y / height, "--w": box.width / width, "--h": box.height / height, "--weight": weight.toFixed(3) };
  for (const [name, value] of Object.entries(style)) cell.style.setProperty(name, value);
  cell.dataset.place = index;
  cell.classList.toggle("tiny", box.width < 62 || box.height < 32);
  cell.classList.toggle("short", box.height < 58);
  cell.classList.toggle("large", box.width > 190 && box.height > 110);
  const words = `${field.category}: ${count(field.held)} held, ${percent(share)}`;
  if (cell.title !== words) {
    cell.title = words;
    cell.setAttribute("aria-label", opens(field) ? `${words}. Show its parts.` : words);
  }
  say(cell.children[0], shortName(field.category));
  say(cell.children[1], brief(field.held));
}

function open(category) {
  opened = category;
  place(theMap());
  crumbs();
  $("crumb-all").focus();
}

function back() {
  const from = opened;
  opened = null;
  place(theMap());
  crumbs();
  const cells = [...theMap().querySelectorAll("button")];
  (cells.find((cell) => cell.dataset.key === `open ${from}`) ?? cells[0])?.focus();
}

function crumbs() {
  draw($("crumbs"), opened, () => (opened === null ? [] : [
    el("button", { type: "button", class: "quiet", id: "crumb-all", text: "← All categories", on: { click: back, keydown: keys } }),
    el("span", { "aria-current": "true", text: opened }),
  ]));
}

/** Arrows go from field to field, Escape goes back. */
function keys(event) {
  if (event.key === "Escape" && opened !== null) return back();
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step || event.target.tagName !== "BUTTON" || event.target.id) return undefined;
  event.preventDefault();
  const order = [...theMap().querySelectorAll("button")].sort((one, other) => one.dataset.place - other.dataset.place);
  return order.at((order.indexOf(event.target) + step) % order.length).focus();
}

function heldTable() {
  const share = (held) => percent(held / Math.max(data.counts.held, 1));
  const rows = [...data.buffers].sort((one, other) => other.held - one.held).flatMap((one) => [
    [one.category, count(one.held), share(one.held)],
    ...(one.parts ?? []).map((part) => [part.category, count(part.held), share(part.held)]),
  ]);
  return table(["Category", "Held", "Of all held"], rows);
}

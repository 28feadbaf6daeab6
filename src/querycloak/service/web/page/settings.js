// The methods in force: what they promise, and what they do not protect against.

import { $, draw, el } from "./dom.js";
import { day } from "./words.js";

export function showSettings({ methods, source, sink, started, counts, version }) {
  draw($("methods"), methods, () => methods.map(method));
  const facts = { Source: source, Sink: sink, Epoch: String(counts.epoch), Started: day(started), Version: version };
  draw($("ends"), facts, () => Object.entries(facts).map(([name, text]) =>
    el("div", {}, el("dt", { text: name }), el("dd", { text }))));
}

function method({ name, settings, promise, does_not_protect_against: gaps }) {
  return el("li", {},
    el("div", { class: "method-head" },
      el("h3", {}, el("code", { text: name })),
      el("ul", { class: "chips", "aria-label": `Settings of ${name}` }, ...Object.entries(settings).map(([key, value]) =>
        el("li", {}, el("span", { text: key }), " ", el("b", { text: inWords(value) }))))),
    el("div", { class: "method-body" },
      el("div", { class: "promise" }, el("h4", { text: "Promise" }), el("p", { text: sentence(promise) })),
      el("div", { class: "gaps" }, el("h4", { text: "Does not protect against" }), el("ul", {}, ...gaps.map((text) => el("li", { text }))))));
}

function inWords(value) {
  if (value === true) return "yes";
  if (value === false) return "no";
  if (value === null || value === "") return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

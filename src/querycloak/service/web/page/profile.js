// The profile of a label: how often what was released under it fell into each category.

import { ask } from "./api.js";
import { $, el } from "./dom.js";
import { count, percent } from "./words.js";

const SHOWN = 12;

export function wireProfile() {
  $("profile").replaceChildren(hint());
  $("profile-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const label = $("label").value.trim();
    if (!label) return;
    $("profile").setAttribute("aria-busy", "true");
    try {
      $("profile").replaceChildren(...bars(label, await ask("/v1/profiles", { label })));
    } catch (fault) {
      $("profile").replaceChildren(el("p", { class: "fault", text: upper(fault.message) }));
    }
    $("profile").removeAttribute("aria-busy");
  });
}

function hint() {
  return el("p", { class: "empty" }, "Labels stand in what ", el("code", { text: "GET /v1/released" }),
    " gives. The label goes to the service in the body of a request, so no log of addresses keeps it.");
}

function bars(label, found) {
  const rows = Object.entries(found).sort((one, other) => other[1] - one[1]);
  const total = rows.reduce((sum, [, many]) => sum + many, 0);
  const list = (some) => el("ul", { class: "bars" }, ...some.map(([category, many]) => bar(category, many, rows[0][1], total)));
  const rest = rows.slice(SHOWN);
  return [
    el("p", { class: "hint" }, el("b", { text: label }), `: ${count(total)} released records in ${count(rows.length)} categories`),
    list(rows.slice(0, SHOWN)),
    rest.length ? el("details", {}, el("summary", { text: `${count(rest.length)} more categories` }), list(rest)) : null,
  ].filter(Boolean);
}

function bar(category, many, most, total) {
  return el("li", {},
    el("span", { class: "name", title: category, text: category || "(none)" }),
    el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "bar", style: { "--part": many / most } })),
    el("span", { class: "value", title: percent(many / total), text: count(many) }));
}

const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");

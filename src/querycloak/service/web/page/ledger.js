// What came in and what became of it, as a sum that a reader can check.

import { $, draw, el, say } from "./dom.js";
import { brief, count, percent } from "./words.js";

const PARTS = ["released", "held", "dropped", "queued"];
const MEANING = {
  accepted: "on disk",
  released: "may be shown",
  held: "wait for others",
  dropped: "never leave",
  queued: "not looked at yet",
};

function term(sign, name, value) {
  return el("div", { class: `term ${name}` },
    el("dt", {}, el("span", { class: "sign", "aria-hidden": "true", text: sign }), el("span", { class: "name", text: name })),
    el("dd", {}, el("span", { class: "figure", title: count(value), text: value < 1e9 ? count(value) : brief(value) }),
      el("span", { class: "meaning", text: MEANING[name] })));
}

export function showLedger({ counts, dropped }) {
  const parts = PARTS.filter((name) => name !== "queued" || counts.queued > 0);
  draw($("sum"), [counts, parts], () => [
    term("", "accepted", counts.accepted),
    ...parts.map((name, place) => term(place ? "+" : "=", name, counts[name])),
  ]);
  draw($("shares"), counts, () => parts.filter((name) => counts[name] > 0).map((name) =>
    el("span", { class: `share ${name}`, title: `${name}: ${percent(counts[name] / counts.accepted)}`,
      style: { "--share": counts[name] / Math.max(counts.accepted, 1) } })));
  const apart = counts.accepted - parts.reduce((sum, name) => sum + counts[name], 0);
  say($("adds-up"), apart === 0 ? "✓ The sum is exact: nothing is lost, nothing is doubled."
    : `On their way between two counters right now: ${count(Math.abs(apart))}.`);
  showReasons(dropped ?? {});
}

function showReasons(dropped) {
  const reasons = Object.entries(dropped).sort((one, other) => other[1] - one[1]);
  $("reasons").hidden = reasons.length === 0;
  draw($("reason-list"), reasons, () => reasons.map(([reason, many]) =>
    el("li", {}, el("b", { text: count(many) }), ` ${reason}`)));
}

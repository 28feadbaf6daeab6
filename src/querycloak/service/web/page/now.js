// The few figures that tell how it goes right now, and how long records wait.

import { $, draw, el } from "./dom.js";
import { lately, spark, went } from "./flow.js";
import { amount, brief, count, lasting, percent, rate } from "./words.js";

export function showNow({ samples, counts }) {
  const now = lately(samples, 10);
  const minute = lately(samples, 60);
  const held = samples.map((sample) => sample[3]).filter((_, place) => place % 10 === 0 || place === samples.length - 1);
  const decided = counts.released + counts.dropped;
  const facts = { now, minute, held, counts };
  draw($("tiles"), facts, () => [
    tile("In", `${rate(now.in)}`, "/s", `${rate(minute.in)}/s over a minute`),
    tile("Out", `${rate(now.out)}`, "/s", `${rate(minute.out)}/s over a minute`),
    tile("Release rate", counts.accepted ? percent(counts.released / counts.accepted) : "–", "",
      decided ? `${percent(counts.released / decided)} of what is decided` : "nothing is decided yet"),
    tile("Held", brief(counts.held), "", "", held.length > 2 ? spark(held, `Held: ${went(held)}`) : null, count(counts.held)),
  ]);
}

function tile(name, figure, unit, more, drawing = null, whole = null) {
  return el("div", { class: "tile" },
    el("dt", { text: name }),
    el("dd", { title: whole },
      el("span", { class: "figure", text: figure }), unit ? el("span", { class: "unit", text: unit }) : null,
      more ? el("span", { class: "more", text: more }) : null, drawing));
}

export function showDelay({ delay, age, counts }) {
  draw($("delay"), [delay, age, counts.held > 0], () => [ofReleased(delay), ofHeld(age, counts.held)]);
}

function ofReleased(delay) {
  if (!delay) return el("p", { class: "empty", text: "Nothing was released lately, so no delay is known." });
  const most = Math.log1p(Math.max(delay.worst, 1));
  const row = (name, value) => el("li", {},
    el("span", { class: "name", text: name }),
    el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "bar", style: { "--part": Math.log1p(value) / most } })),
    el("span", { class: "value", title: count(value), text: amount(value, delay.unit) }));
  const what = delay.unit === "records" ? "Records that came between a record's arrival and its release." : "From arrival to release.";
  return el("div", { class: "waits" },
    el("h3", { text: "Those released lately" }),
    el("p", { class: "hint", text: `${what} The scale is logarithmic.` }),
    el("ul", { class: "bars" }, row("half of them, at most", delay.median), row("95 of 100, at most", delay.p95), row("the slowest", delay.worst)));
}

function ofHeld(age, held) {
  if (!age || !held) return el("p", { class: "empty", text: "Nothing waits." });
  return el("div", { class: "waits" },
    el("h3", { text: "Those held now" }),
    el("p", { class: "pair" }, "Half have waited up to ", el("b", { text: lasting(age.median) }),
      ", the oldest ", el("b", { text: lasting(age.oldest) }), "."));
}

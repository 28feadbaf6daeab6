// How often an attacker is right about what was released, beside what was promised.

import { $, draw, el } from "./dom.js";
import { clock, count, percent } from "./words.js";

export function showLinkage({ linkage }) {
  const verdict = $("link-verdict");
  verdict.hidden = !linkage || linkage.bound === null;
  if (!verdict.hidden) {
    const above = linkage.low > linkage.bound;
    verdict.textContent = above ? "above the bound" : "holds";
    verdict.className = `verdict ${above ? "bad" : "good"}`;
  }
  draw($("link"), linkage, () => (linkage ? [gauge(linkage), inWords(linkage)] : nothing()));
}

function nothing() {
  return el("p", { class: "empty", text: "No estimate yet. The service attacks what it released now and then; it needs some released records for that." });
}

function gauge({ success, low, high, bound }) {
  const end = Math.min(1, Math.max(1.3 * high, 2 * (bound ?? 0), 0.01));
  const part = (value) => Math.min(1, Math.max(0, value / end));
  const label = `Right guesses: ${percent(success)}, interval ${percent(low)} to ${percent(high)}` +
    (bound === null ? "." : `; bound ${percent(bound)}.`);
  return el("div", { class: "gauge", role: "img", "aria-label": label },
    el("div", { class: "gauge-track" },
      bound === null ? null : el("span", { class: "within", style: { "--part": part(bound) } }),
      el("span", { class: "interval", style: { "--from": part(low), "--to": part(high) } }),
      el("span", { class: "estimate", style: { "--at": part(success) } }),
      bound === null ? null : el("span", { class: "bound", style: { "--at": part(bound) } },
        el("span", { class: "bound-words", text: boundWords(bound) }))),
    el("div", { class: "gauge-ends" }, el("span", { text: "0 %" }), el("span", { text: percent(end) })));
}

/** Write a bound as 1/k where it is one. */
function boundWords(bound) {
  const k = Math.round(1 / bound);
  return Math.abs(1 / bound - k) < 1e-6 && k > 1 ? `1/${k} = ${percent(bound)}` : `bound ${percent(bound)}`;
}

function inWords({ attack, success, low, high, bound, n, at }) {
  const verdict = bound === null ? "No bound is promised against it."
    : low > bound ? `This is more than the promised ${percent(bound)}, and chance does not explain it.`
      : success > bound ? `The promised ${percent(bound)} lie within the interval.`
        : `That is within the promised ${percent(bound)}.`;
  return el("div", { class: "link-words" },
    el("p", {}, el("b", { class: "figure", text: percent(success) }), " of the guesses name the right person."),
    el("p", { class: "hint" }, "Attack ", el("code", { text: attack }),
      `, ${count(n)} guesses, interval ${percent(low)} to ${percent(high)}, at ${clock(at)}. ${verdict}`));
}

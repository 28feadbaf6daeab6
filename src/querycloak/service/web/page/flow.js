// Records a second, in and out: what comes is drawn upwards, what leaves downwards, on one scale.

import { $, draw, el, say, svg, table } from "./dom.js";
import { brief, clock, hour, rate } from "./words.js";

const LONGEST = 600;
const AWAY = 15;  // seconds without a sample after which the service was away
const SPACE = { left: 52, right: 14, top: 12, bottom: 26 };

/** Turn counters into rates, in bins of so many seconds; bins without samples stay away. */
export function rates(samples, seconds) {
  const bins = new Map();
  for (let i = 1; i < samples.length; i++) {
    const [t, accepted, released] = samples[i];
    const [before, acceptedBefore, releasedBefore] = samples[i - 1];
    if (t <= before || t - before > AWAY) continue;  // the clock was set, or the service was away
    const start = Math.floor(t / seconds) * seconds;
    const bin = bins.get(start) ?? { t: start, lasted: 0, in: 0, out: 0 };
    bin.lasted += t - before;
    bin.in += accepted - acceptedBefore;
    bin.out += released - releasedBefore;
    bins.set(start, bin);
  }
  return [...bins.values()].map((bin) => ({ t: bin.t, in: bin.in / bin.lasted, out: bin.out / bin.lasted }));
}

/** Rates over the last seconds of a series. */
export function lately(samples, seconds) {
  const last = samples.at(-1);
  const first = samples.find(([t]) => t >= (last?.[0] ?? 0) - seconds);
  if (!last || last[0] <= first[0]) return { in: 0, out: 0 };
  return { in: (last[1] - first[1]) / (last[0] - first[0]), out: (last[2] - first[2]) / (last[0] - first[0]) };
}

/** The next of 1, 2, 5, 10, 20, 50 … */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return power * [1, 2, 5, 10].find((step) => step * power >= value);
}

/** Split into runs without a gap, so that no line is drawn over time that nobody measured. */
function runs(points) {
  const found = [];
  for (const point of points) {
    const run = found.at(-1);
    if (run && point.t - run.at(-1).t <= AWAY) run.push(point);
    else found.push([point]);
  }
  return found;
}

let shown = null;
let watched = null;

export function showFlow({ samples, now }) {
  const measured = now - (samples[0]?.[0] ?? now);
  const span = Math.min(LONGEST, 60 * Math.max(1, Math.ceil(measured / 60)));
  shown = { points: rates(samples, span > 180 ? 5 : 2).filter((point) => point.t >= now - span), now, span };
  say($("flow-title"), `In and out, last ${span > 60 ? `${span / 60} minutes` : "minute"}`);
  if (!watched) {
    watched = new ResizeObserver(() => drawFlow());
    watched.observe($("flow"));
  }
  drawFlow();
  showTable(samples);
}

function drawFlow() {
  const place = $("flow");
  const width = place.clientWidth;
  const height = place.clientHeight;
  if (!shown || width < 50) return;
  const { points, now, span } = shown;
  const top = roundUp(Math.max(1, ...points.map((p) => Math.max(p.in, p.out))));
  const middle = (SPACE.top + height - SPACE.bottom) / 2;
  const reach = middle - SPACE.top;
  const scale = {
    x: (t) => SPACE.left + (1 - (now - t) / span) * (width - SPACE.left - SPACE.right),
    up: (value) => middle - (value / top) * reach,
    down: (value) => middle + (value / top) * reach,
    middle, top, width, height, span,
  };
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words(points) },
    ...grid(scale, now),
    ...runs(points).flatMap((run) => [...shape(run, "in", scale.x, scale.up, middle), ...shape(run, "out", scale.x, scale.down, middle)]));
  const readout = el("p", { class: "readout", "aria-hidden": "true" });
  place.replaceChildren(drawing, readout);
  drawing.addEventListener("pointermove", (event) => point(event, drawing, readout, scale, points));
  drawing.addEventListener("pointerleave", () => clear(drawing, readout));
}

function grid({ x, up, down, top, width, height, span }, now) {
  const lines = [1, 0.5, 0, -0.5, -1].map((part) => {
    const y = part >= 0 ? up(part * top) : down(-part * top);
    return [svg("line", { class: part ? "rule" : "rule zero", x1: SPACE.left, x2: width - SPACE.right, y1: y, y2: y }),
      svg("text", { class: "tick", x: SPACE.left - 10, y: y + 4, "text-anchor": "end", text: part ? rate(Math.abs(part) * top) : "0 /s" })];
  });
  const step = [15, 30, 60, 120, 240].find((seconds) => (span / seconds) * 96 <= width) ?? 240;
  const name = step < 60 ? clock : hour;
  const times = [];
  for (let t = Math.ceil((now - span) / step) * step; t <= now; t += step) {
    times.push(svg("text", { class: "tick", x: Math.min(Math.max(x(t), SPACE.left), width - (step < 60 ? 30 : 18)), y: height - 6, "text-anchor": "middle", text: name(t) }));
  }
  return [...lines.flat(), ...times];
}

function shape(run, what, x, y, middle) {
  const line = run.map((p, i) => `${i ? "L" : "M"}${x(p.t).toFixed(1)},${y(p[what]).toFixed(1)}`).join("");
  const area = `${line}L${x(run.at(-1).t).toFixed(1)},${middle}L${x(run[0].t).toFixed(1)},${middle}Z`;
  return [svg("path", { class: `area ${what}`, d: area }), svg("path", { class: `line ${what}`, d: line })];
}

function words(points) {
  if (!points.length) return "Records a second, in and out. Nothing is measured yet.";
  const last = points.at(-1);
  const most = (what) => rate(Math.max(...points.map((p) => p[what])));
  return `Records a second, lately. In: ${rate(last.in)} now, ${most("in")} at most. ` +
    `Out: ${rate(last.out)} now, ${most("out")} at most.`;
}

function point(event, drawing, readout, scale, points) {
  const x = event.clientX - drawing.getBoundingClientRect().left;
  const near = points.reduce((best, p) => (!best || Math.abs(scale.x(p.t) - x) < Math.abs(scale.x(best.t) - x) ? p : best), null);
  clear(drawing, readout);
  if (!near) return;
  const at = scale.x(near.t);
  drawing.append(svg("g", { class: "cross" },
    svg("line", { x1: at, x2: at, y1: SPACE.top, y2: scale.height - SPACE.bottom }),
    svg("circle", { class: "in", cx: at, cy: scale.up(near.in), r: 3.5 }),
    svg("circle", { class: "out", cx: at, cy: scale.down(near.out), r: 3.5 })));
  readout.textContent = `${clock(near.t)}   in ${rate(near.in)}/s   out ${rate(near.out)}/s`;
}

function clear(drawing, readout) {
  drawing.querySelector(".cross")?.remove();
  readout.textContent = "";
}

function showTable(samples) {
  const minutes = rates(samples, 60).reverse();
  draw($("flow-table"), minutes, () => table(["From", "In, records/s", "Out, records/s"],
    minutes.map((m) => [hour(m.t), rate(m.in), rate(m.out)])));
}

/** A small line of how a counter went. */
export function spark(values, label) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const place = (v, i) => `${((i / Math.max(values.length - 1, 1)) * 100).toFixed(1)},${(22 - ((v - low) / Math.max(high - low, 1)) * 20).toFixed(1)}`;
  return svg("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("polyline", { points: values.map(place).join(" ") }));
}

/** Words for a spark: where it began and where it is. */
export const went = (values) => `from ${brief(values[0])} to ${brief(values.at(-1))} in the time shown`;

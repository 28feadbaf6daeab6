// Brings the page of a comparison to life: the picture, the answer, sorting and seeking. All numbers and all
// sentences are in the page already; nothing is computed here but where things stand on the screen.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(byId(id).textContent);
  const data = read("frontier-data");
  const answers = read("answers-data");
  const stops = JSON.parse(byId("limit").dataset.stops);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const percent = (share) => {
    const hundredths = 100 * share;
    if (hundredths > 0 && hundredths < 0.1) return hundredths < 0.01 ? "<0.01 %" : `${hundredths.toFixed(2)} %`;
    return `${hundredths.toFixed(1)} %`;
  };
  const safe = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const whole = (text) => text.replace(/(\d) %/g, "$1\u00a0%"); // a number and its sign stay on one line
  const limit = () => stops[Number(byId("limit").value)] / 100;
  const titleOf = (list, name) => list.find((one) => one.name === name).title;

  // The answer

  function answer() {
    const found = answers[byId("who").value][byId("use").value].filter(([from]) => from <= limit() + 1e-12).pop();
    const strong = document.createElement("strong");
    strong.textContent = found[1];
    byId("answer-text").replaceChildren(strong, whole(`: ${found[2]}`));
    byId("answer-more").textContent = whole(found[3]);
    byId("answer-box").classList.toggle("none", found[3] === "");
  }

  function slid(event) {
    for (const name of ["limit", "limit-too"]) {
      const slider = byId(name);
      slider.value = event ? event.target.value : byId("limit").value;
      slider.setAttribute("aria-valuetext", `${stops[Number(slider.value)]} percent`);
      byId(`${name}-shown`).textContent = `${stops[Number(slider.value)]} %`;
    }
    answer();
    draw();
  }

  // The picture

  const chosen = () => new Set([...document.querySelectorAll("[data-line]:checked")].map((box) => Number(box.dataset.line)));
  const root = () => byId("scale").value === "root";
  const up = (share) => (root() ? Math.sqrt(Math.max(0, share)) : share);
  const TICKS = { root: [0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1], even: [0, 0.2, 0.4, 0.6, 0.8, 1] };

  function theme(light) {
    if (light || !dark.matches) return { ink: "#1c2630", soft: "#4f5964", grid: "#e4e0d5", paper: "#ffffff", key: "colour" };
    return { ink: "#e7eaea", soft: "#a9b4ba", grid: "#313c44", paper: "#182026", key: "dark" };
  }

  function hover(point, x, y, eligible) {
    const settings = safe(point.settings).replace(/(.{50,70}?[,;]) /g, "$1<br>");
    const lines = [
      `<b>${safe(point.name)}</b>`,
      `keeps ${percent(x[0])}`,
      `${safe(y.attack)}: ${safe(percent(y.share))} (${safe(percent(y.low))} to ${safe(percent(y.high))})`,
    ];
    if (y.bound !== null) lines.push(`stated bound: ${percent(y.bound)}`);
    lines.push(eligible ? "within the limit" : "above the limit", settings);
    return lines.join("<br>");
  }

  // Gives each label a place where it covers no marker and no other label; where there is none, it is left out.
  function places(points, box) {
    const taken = points.map((p) => [p.left - 7, p.top - 7, p.left + 7, p.top + 7]);
    const meets = (one, two) => one[0] < two[2] && two[0] < one[2] && one[1] < two[3] && two[1] < one[3];
    const labels = points.map((p) => {
      const wide = 7.2 * p.label.length + 6;
      const spots = {
        "middle right": [p.left + 8, p.top - 8, p.left + 8 + wide, p.top + 8],
        "middle left": [p.left - 8 - wide, p.top - 8, p.left - 8, p.top + 8],
        "top center": [p.left - wide / 2, p.top - 23, p.left + wide / 2, p.top - 8],
        "bottom center": [p.left - wide / 2, p.top + 8, p.left + wide / 2, p.top + 23],
      };
      for (const [name, spot] of Object.entries(spots)) {
        const inside = spot[0] > 0 && spot[2] < box.wide && spot[1] > 0 && spot[3] < box.high;
        if (inside && !taken.some((other) => meets(spot, other))) {
          taken.push(spot);
          const [before, after] = [name === "middle right" ? "\u00a0" : "", name === "middle left" ? "\u00a0" : ""];
          return { text: `${before}${safe(p.label)}${after}`, position: name };
        }
      }
      return { text: "", position: "top center" };
    });
    return { labels, free: (spot) => !taken.some((other) => meets(spot, other)) };
  }

  // With a key of its own (and on white) for a picture that leaves the page, where the list of methods is not.
  function figure(wide, high, saved) {
    const [axis, attacker] = [byId("axis").value, byId("attacker").value];
    const [colours, lines, small] = [theme(saved), chosen(), wide < 560];
    const margin = { l: 60, r: saved ? 270 : small ? 14 : 30, t: small ? 58 : 50, b: 66 };
    const shown = data.points.filter((p) => lines.has(p.line) && p.x[axis] && p.y[attacker]);
    const least = Math.min(1, ...shown.map((p) => p.x[axis][1]));
    const start = least > 0.5 ? Math.max(0, Math.floor(10 * least) / 10 - 0.1) : 0;
    const rangeX = [start - 0.03 * (1 - start), 1 + (small ? 0.06 : 0.075) * (1 - start)];
    const most = Math.max(0.02, limit(), ...shown.map((p) => Math.max(p.y[attacker].high, p.y[attacker].bound || 0)));
    const top = up(Math.min(1, 1.12 * most)) + 0.03;
    const rangeY = [-0.03 * top, top];
    const box = { wide: wide - margin.l - margin.r, high: high - margin.t - margin.b };
    const { labels: spots, free } = places(shown.map((p) => ({
      label: p.label,
      left: ((p.x[axis][0] - rangeX[0]) / (rangeX[1] - rangeX[0])) * box.wide,
      top: (1 - (up(p.y[attacker].share) - rangeY[0]) / (rangeY[1] - rangeY[0])) * box.high,
    })), box);
    const traces = [];
    data.lines.forEach((line, place) => {
      const own = shown.map((p, at) => [p, spots[at]]).filter(([p]) => p.line === place);
      if (own.length) traces.push(...drawn(line, own, { axis, attacker, colours, saved }));
    });
    const low = (1 - (up(limit()) - rangeY[0]) / (rangeY[1] - rangeY[0])) * box.high;
    const steps = [...Array(16).keys()].map((step) => step / 16);
    const where = steps.find((part) => free([part * box.wide - 4, low - 20, part * box.wide + 84, low + 2]));
    return { traces, layout: layout({ where, start, axis, attacker, colours, margin, rangeX, rangeY, wide, high, small, saved }), shown };
  }

  function drawn(line, own, { axis, attacker, colours, saved }) {
    const [xs, ys] = [own.map(([p]) => p.x[axis]), own.map(([p]) => p.y[attacker])];
    const fits = ys.map((y) => y.high <= limit() + 1e-12);
    const colour = line[colours.key];
    const bars = (values) => ({ type: "data", symmetric: false, color: colour, thickness: 1.4, width: 3, ...values });
    const spread = xs.some((x) => x[2] > x[1]);
    const main = {
      type: "scatter", mode: "lines+markers+text", name: safe(line.name), showlegend: saved,
      x: xs.map((x) => x[0]), y: ys.map((y) => up(y.share)),
      error_y: bars({ array: ys.map((y) => up(y.high) - up(y.share)), arrayminus: ys.map((y) => up(y.share) - up(y.low)) }),
      text: own.map(([, spot]) => spot.text), textposition: own.map(([, spot]) => spot.position),
      textfont: { color: colour, size: 12 },
      line: { color: colour, width: 2 },
      marker: { opacity: 1, color: fits.map((fit) => (fit ? colour : colours.paper)), symbol: line.shape, size: fits.map((fit) => (fit ? 12 : 10)), line: { color: colour, width: 2 } },
      customdata: own.map(([p], at) => hover(p, xs[at], ys[at], fits[at])),
      hovertemplate: "%{customdata}<extra></extra>",
    };
    if (spread) main.error_x = bars({ array: xs.map((x) => x[2] - x[0]), arrayminus: xs.map((x) => x[0] - x[1]) });
    const bounded = own.map((_, at) => at).filter((at) => ys[at].bound !== null);
    if (!bounded.length) return [main];
    const dashes = {
      type: "scatter", mode: "lines+markers", showlegend: false, hoverinfo: "skip",
      x: bounded.map((at) => xs[at][0]), y: bounded.map((at) => up(ys[at].bound)),
      line: { color: colour, width: 1.6, dash: "dash" },
      marker: { symbol: "line-ew", size: 16, color: colour, line: { color: colour, width: 2 } },
    };
    return [dashes, main];
  }

  function layout(of) {
    const ticks = TICKS[byId("scale").value];
    const line = up(limit());
    const step = of.start >= 0.5 ? 0.1 : of.small ? 0.25 : 0.2;
    const across = [...Array(Math.round((1 - of.start) / step) + 1).keys()].map((count) => 1 - count * step);
    const how = root() ? " (square-root scale)" : "";
    const title = safe(titleOf(data.attackers, of.attacker));
    return {
      width: of.wide, height: of.high, margin: of.margin, showlegend: of.saved, dragmode: false, hovermode: "closest",
      paper_bgcolor: of.colours.paper, plot_bgcolor: of.colours.paper,
      font: { family: "system-ui, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif", color: of.colours.ink, size: 13 },
      hoverlabel: { align: "left", bgcolor: of.colours.paper, bordercolor: of.colours.soft, font: { color: of.colours.ink, size: 13 } },
      title: { text: `<b>↑ ${of.small ? title.replace(/(.{18,34}) /, "$1<br>") : title}</b>${of.small ? "" : how}`, x: 0, xref: "container", xanchor: "left", pad: { l: 14, t: 14 }, y: 1, yref: "container", yanchor: "top", font: { size: of.small ? 13 : 15 } },
      xaxis: { title: { text: `<b>${safe(titleOf(data.axes, of.axis))} →</b>`, font: { size: of.small ? 13 : 15 }, standoff: 12 }, range: of.rangeX, tickvals: across, ticktext: across.map((share) => `${Math.round(100 * share)} %`), gridcolor: of.colours.grid, zeroline: false, fixedrange: true },
      yaxis: { range: of.rangeY, tickvals: ticks.map(up), ticktext: ticks.map((share) => `${100 * share} %`), gridcolor: of.colours.grid, zeroline: false, fixedrange: true },
      shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: line, y1: line, line: { color: of.colours.soft, width: 1.5, dash: "dot" } }],
      annotations: of.where === undefined ? [] : [{ xref: "paper", x: of.where, y: line, xanchor: "left", yanchor: "bottom", showarrow: false, text: `limit ${Number((100 * limit()).toFixed(1))} %`, font: { size: 12, color: of.colours.soft } }],
    };
  }

  function draw() {
    const place = byId("plot");
    if (!place.clientWidth) return; // on paper the still picture stands in its place
    const made = figure(place.clientWidth, place.clientHeight, false);
    // Not `react`: it loses labels when it is called twice in a row.
    window.Plotly.newPlot(place, made.traces, made.layout, { displayModeBar: false, responsive: false, scrollZoom: false });
    note(made.shown);
  }

  function note(shown) {
    const fit = shown.filter((p) => p.y[byId("attacker").value].high <= limit() + 1e-12).length;
    const names = new Set(shown.map((p) => p.name));
    const lines = chosen();
    const left = new Set(data.points.filter((p) => lines.has(p.line) && !names.has(p.name)).map((p) => {
      const some = shown.some((other) => other.line === p.line);
      return some ? p.name : data.lines[p.line].name;
    }));
    const absent = left.size
      ? ` Not in this picture, for want of one of the two numbers (the table of all settings says why): ${[...left].join(", ")}.`
      : "";
    byId("picture-note").textContent =
      `Filled markers are within the limit even at the upper end of their interval (${fit} of ${shown.length}); hollow ones are above it.${absent}`;
  }

  function save(format) {
    const made = figure(1400, 760, true);
    window.Plotly.downloadImage({ data: made.traces, layout: made.layout }, { format, width: 1400, height: 760, scale: format === "png" ? 2 : 1, filename: "querycloak-frontier" });
  }

  // The table

  function sort(head) {
    const table = byId("candidates-table");
    const place = [...head.parentNode.children].indexOf(head);
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => {
      const cell = row.children[place];
      if (place === 0) return row.dataset.name;
      return cell && cell.dataset.value !== undefined ? Number(cell.dataset.value) : null;
    };
    const order = (one, two) => {
      const [a, b] = [key(one), key(two)];
      if (a === null || b === null) return (a === null) - (b === null); // what has no number stands last
      const by = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
      return up ? by : -by;
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(order));
  }

  function seek(event) {
    const wanted = event.target.value.trim().toLowerCase();
    for (const row of byId("candidates-table").tBodies[0].rows) row.hidden = !row.dataset.name.toLowerCase().includes(wanted);
  }

  // Wiring

  function choose(from, to) {
    byId(from).addEventListener("change", (event) => {
      const other = byId(to);
      if ([...other.options].some((option) => option.value === event.target.value)) other.value = event.target.value;
      answer();
      draw();
    });
  }

  function start() {
    document.documentElement.classList.add("live");
    for (const [one, two] of [["who", "attacker"], ["attacker", "who"], ["use", "axis"], ["axis", "use"]]) choose(one, two);
    byId("scale").addEventListener("change", draw);
    for (const name of ["limit", "limit-too"]) byId(name).addEventListener("input", slid);
    for (const box of document.querySelectorAll("[data-line]")) box.addEventListener("change", draw);
    for (const [name, on] of [["all", true], ["none", false]]) {
      byId(name).addEventListener("click", () => {
        for (const box of document.querySelectorAll("[data-line]")) box.checked = on;
        draw();
      });
    }
    for (const format of ["png", "svg"]) byId(`save-${format}`).addEventListener("click", () => save(format));
    for (const head of document.querySelectorAll("#candidates-table thead th")) {
      head.firstElementChild.addEventListener("click", () => sort(head));
    }
    byId("seek").addEventListener("input", seek);
    dark.addEventListener("change", draw);
    for (const moment of ["resize", "load"]) window.addEventListener(moment, draw);
    window.addEventListener("beforeprint", () => {
      for (const one of document.querySelectorAll("details")) one.open = true;
    });
    slid();
  }

  if (window.Plotly) start();
})();

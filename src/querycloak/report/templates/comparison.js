// The controls of a comparison's page: chart, answer, sorting and searching. All numbers and sentences are in the page.
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

  // The chart: Python gives points, traces and layout; here the chosen numbers are put into them.

  const chosen = () => new Set([...document.querySelectorAll("[data-line]:checked")].map((box) => Number(box.dataset.line)));
  const root = () => byId("scale").value === "root";
  const up = (share) => (root() ? Math.sqrt(Math.max(0, share)) : share);

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

  function traces(line, points, axis, attacker, colours, saved) {
    const [xs, ys] = [points.map((p) => p.x[axis]), points.map((p) => p.y[attacker])];
    const fits = ys.map((y) => y.high <= limit() + 1e-12);
    const colour = line[colours.key];
    const bars = (above, below) => ({ type: "data", symmetric: false, color: colour, thickness: 1.4, width: 3, array: above, arrayminus: below });
    const main = {
      ...data.trace,
      name: safe(line.name), showlegend: saved,
      x: xs.map((x) => x[0]), y: ys.map((y) => up(y.share)),
      error_x: bars(xs.map((x) => x[2] - x[0]), xs.map((x) => x[0] - x[1])),
      error_y: bars(ys.map((y) => up(y.high) - up(y.share)), ys.map((y) => up(y.share) - up(y.low))),
      text: points.map((p) => safe(p.label)), textfont: { ...data.trace.textfont, color: colour },
      line: { ...data.trace.line, color: colour },
      marker: { symbol: line.shape, opacity: 1, color: fits.map((fit) => (fit ? colour : colours.paper)), size: fits.map((fit) => (fit ? 12 : 10)), line: { color: colour, width: 2 } },
      customdata: points.map((p, at) => hover(p, xs[at], ys[at], fits[at])),
    };
    if (xs.every((x) => x[1] === x[2])) delete main.error_x;
    const bounded = ys.map((_, at) => at).filter((at) => ys[at].bound !== null);
    const bound = {
      type: "scatter", mode: "lines+markers", showlegend: false, hoverinfo: "skip",
      x: bounded.map((at) => xs[at][0]), y: bounded.map((at) => up(ys[at].bound)),
      line: { color: colour, width: 1.6, dash: "dash" },
      marker: { symbol: "line-ew", size: 16, color: colour, line: { color: colour, width: 2 } },
    };
    return bounded.length ? [bound, main] : [main];
  }

  // A saved picture is white and has a key of its own: the list of methods is not in it.
  function figure(wide, high, saved) {
    const [axis, attacker, lines, colours] = [byId("axis").value, byId("attacker").value, chosen(), theme(saved)];
    const shown = data.points.filter((p) => lines.has(p.line) && p.x[axis] && p.y[attacker]);
    const made = data.lines.flatMap((line, place) => {
      const own = shown.filter((p) => p.line === place);
      return own.length ? traces(line, own, axis, attacker, colours, saved) : [];
    });
    const ticks = data.ticks[byId("scale").value];
    const small = wide < 560;
    const title = safe(titleOf(data.attackers, attacker));
    const grid = { gridcolor: colours.grid };
    const base = data.layout;
    const layout = {
      ...base,
      width: wide, height: high, showlegend: saved, paper_bgcolor: colours.paper, plot_bgcolor: colours.paper,
      font: { ...base.font, color: colours.ink },
      hoverlabel: { ...base.hoverlabel, bgcolor: colours.paper, bordercolor: colours.soft, font: { ...base.hoverlabel.font, color: colours.ink } },
      title: { ...base.title, text: `<b>↑ ${small ? title.replace(/(.{18,34}) /, "$1<br>") : title}</b>${root() && !small ? " (square-root scale)" : ""}`, font: { size: small ? 13 : 15 } },
      xaxis: { ...base.xaxis, ...grid, title: { ...base.xaxis.title, text: `<b>${safe(titleOf(data.axes, axis))} →</b>`, font: { size: small ? 13 : 15 } } },
      yaxis: { ...base.yaxis, ...grid, tickvals: ticks.map(up), ticktext: ticks.map((share) => `${Math.round(100 * share)} %`) },
      shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: up(limit()), y1: up(limit()), line: { color: colours.soft, width: 1.5, dash: "dot" } }],
      annotations: [{ xref: "paper", x: 1, y: up(limit()), xanchor: "right", yanchor: "bottom", showarrow: false, text: `limit ${Number((100 * limit()).toFixed(1))} %`, font: { size: 12, color: colours.soft } }],
    };
    return { traces: made, layout, shown };
  }

  function draw() {
    const place = byId("plot");
    if (!place.clientWidth) return; // on paper the static chart stands in its place
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
      ? ` Not in this chart, for want of one of the two numbers (the table of all settings says why): ${[...left].join(", ")}.`
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

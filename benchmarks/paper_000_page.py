"""Writes docs/papers/paper-000.md and its figures from the lines that `benchmarks.paper_000` measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import paper_000_figures as figures
from benchmarks.paper_000_figures import SHOWN_K, THREE, Results
from querycloak.measures import kolmogorov_smirnov

PAGE = Path(__file__).parents[1] / "docs" / "papers" / "paper-000.md"
#: Categories that each level adds in the paper's Table 3.
PAPER_CATEGORIES = [16, 537, 5523, 21786, 36806, 35543, 39998, 26914, 16863, 7863, 2143, 441, 72]
RELEASE_ONLY = ("link-random", "link-frequent", "link-profile", "link-window", "link-repeat", "link-time")
UNBOUNDED = ("link-volume", "link-pairs", "link-background")
LARGEST_FIGURE = 150_000


def percent(share: float | None, digits: int = 2) -> str:
    """Spell a share in percent, or a dash where there is none."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def interval(found: dict[str, Any]) -> str:
    """Spell a success with its interval."""
    if found["success"] is None:
        return "–"
    return f"{percent(found['success'])} ({100 * found['low']:.2f}–{100 * found['high']:.2f})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table; all columns but the first are numbers."""
    ruler = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ruler, *rows])


def load(path: Path) -> Results:
    """Read the lines of a run."""
    about, *lines = (json.loads(text) for text in path.read_text().splitlines())
    return Results(about, lines)


def success(line: dict[str, Any] | None, name: str) -> float | None:
    """Give an attack's share of right guesses, or None where it was not tried."""
    found = (line or {"attacks": {}})["attacks"].get(name)
    return found["success"] if found else None


def headline(results: Results) -> str:
    """Set the paper's headline numbers beside ours."""
    swaps, get = results.base("swap"), results.one
    mean = sum(o["microseconds_per_record"] for o in swaps) / len(swaps)
    at_190 = [o["microseconds_per_record"] for o in swaps if o["k"] == 190]
    above = [max(o["attacks"][a]["success"] for a in THREE) for o in swaps if o["k"] >= 100]
    deep, flat = get("base", "swap", 3, 13), get("base", "swap", 3, 1)
    cohort = get("base", "cohort", SHOWN_K, assign="arrival")
    by_topic, deeper = get("base", "swap", SHOWN_K, 1), get("base", "swap", SHOWN_K, 6)

    def micro(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f} µs"

    def loss(line: dict[str, Any] | None) -> str:
        return percent(line["profile"]["loss"]) if line else "–"

    return table(
        ["", "paper", "`swap` here", f"`cohort` here, k={SHOWN_K}"],
        [
            ["time per record, k=3, level 1", "18.99 µs", micro(flat and flat["microseconds_per_record"]),
             micro(cohort and cohort["microseconds_per_record"])],
            ["the same, mean of all settings", "33.68 µs", micro(mean), ""],
            ["the same, k=190, slowest level", "49.71 µs", micro(max(at_190, default=None)), ""],
            ["`link-profile`, k=3, level 13", "23.18 %", percent(success(deep, "link-profile")), ""],
            ["`link-random`, k=3, level 13", "18.36 %", percent(success(deep, "link-random")), ""],
            ["best of the three, k ≥ 100", "< 1 %", percent(max(above, default=None)), ""],
            [f"profile loss, level 1, k={SHOWN_K}", "42.03 %", loss(by_topic), loss(cohort)],
            [f"profile loss, level 6, k={SHOWN_K}", "< 1 %", loss(deeper), ""],
            ["categories in use", "194,505", f"{sum(results.about['added_categories'].values()):,}", ""],
        ],
    )  # fmt: skip


def linked_by_k(results: Results, name: str, level: int, part: str = "base") -> dict[int, float]:
    """Give an attack's success at each k tried on `swap` at a level."""
    lines = ((k, results.one(part, "swap", k, level)) for k in results.ks)
    return {k: line["attacks"][name]["success"] for k, line in lines if line}


def compared(results: Results) -> tuple[str, dict[str, list[float]]]:
    """Repeat the paper's Kolmogorov-Smirnov comparison; give its table and the curves of figure 7."""
    rows, curves = [["paper", "", "0.08", "0.9977"]], {"1/k": [1 / k for k in results.ks]}
    tried = [(name, level, "base") for name in THREE for level in (1, 13)] + [("link-repeat", 1, "ours")]
    for name, level, part in tried:
        linked = linked_by_k(results, name, level, part)
        if not linked:
            continue
        gap, p_value = kolmogorov_smirnov([1 / k for k in linked], list(linked.values()))
        rows.append([f"`{name}`, level {level}", str(len(linked)), f"{gap:.2f}", f"{p_value:.4f}"])
        curves[f"{name}, level {level}"] = list(linked.values())
    return table(["", "k tried", "D", "p-value"], rows), curves


def grid(results: Results, value: Any, spell: Any) -> str:
    """Write a table of k by level."""
    rows = []
    for k in results.ks:
        lines = [results.one("base", "swap", k, level) for level in results.levels]
        rows.append([f"k={k}", *("–" if line is None else spell(value(line)) for line in lines)])
    return table(["", *(f"level {level}" for level in results.levels)], rows)


def cohort_grid(results: Results) -> str:
    """Write what `cohort` costs and what the paper's attacks achieve on it."""
    rows = []
    for assign in ("arrival", "similar"):
        for one in sorted(results.base("cohort", assign), key=lambda o: o["k"]):
            facts = one["facts"]
            rows.append([
                f"{assign}, k={one['k']}",
                percent(max(one["attacks"][name]["success"] for name in THREE)),
                percent(1 / one["k"]),
                percent(one["release_rate"]),
                f"{one['delay_mean']:,.0f}",
                percent(one["profile"]["loss"]),
                f"{one['profile']['topics']:.3f}",
                percent(facts.get("largest_share_of_one_member_median"), 1),
            ])  # fmt: skip
    head = ["", "best of the three", "1/k", "released", "mean delay, records", "profile loss",
            "topic divergence", "heaviest member's share, median"]  # fmt: skip
    return table(head, rows)


def tried(results: Results) -> list[tuple[str, dict[str, Any]]]:
    """Name the releases on which our own attacks were tried."""
    lines = [one for one in results.lines if one["part"] == "ours"]
    lines.sort(key=lambda one: (one["method"] != "swap", one["level"], one["assign"] or "", one["k"]))
    return [(f"`{o['method']}` k={o['k']}, {o['assign'] or 'level ' + str(o['level'])}", o) for o in lines]


def stronger(results: Results) -> str:
    """Write what attackers who see only the release achieve, against 1/k."""
    rows = []
    for name, line in tried(results):
        base = results.one("base", line["method"], line["k"], line["level"], line["assign"])
        every = (base or {"attacks": {}})["attacks"] | line["attacks"]
        bounded = {a: every[a] for a in RELEASE_ONLY if a in every and every[a]["success"] is not None}
        often = line["attacks"]["link-repeat"]["by_repeats"]["5+"]
        holds = all(f["holds"] for f in bounded.values()) and (often is None or often["holds"])
        best = max(bounded, key=lambda a: bounded[a]["success"])
        rows.append([
            name, percent(1 / line["k"]),
            *(interval(bounded[a]) if a in bounded else "–" for a in RELEASE_ONLY[3:]),
            interval(often) if often else "–",
            f"`{best}`", "yes" if holds else "**no**",
        ])  # fmt: skip
    ours = [f"`{name}`" for name in RELEASE_ONLY[3:]]
    head = ["release", "1/k", *ours, "`link-repeat`, strings asked 5+ times", "best", "1/k holds"]
    return table(head, rows)


def unbounded(results: Results) -> str:
    """Write what attackers achieve whom nobody promised to stop."""
    rows = []
    for name, line in tried(results):
        found = [line["attacks"].get(a) for a in UNBOUNDED]
        cells = ["–" if f is None or f["success"] is None else _with_chance(f) for f in found]
        rows.append([name, *cells])
    return table(["release", *(f"`{a}`" for a in UNBOUNDED)], rows)


def _with_chance(found: dict[str, Any]) -> str:
    chance = found.get("chance")
    return interval(found) + (f", chance {percent(chance)}" if chance is not None else "")


def wrong(results: Results) -> str:
    """Write what an attacker achieves who believes in another k or level."""
    line = next((one for one in results.lines if one["part"] == "wrong"), None)
    if line is None:
        return ""
    rows = [
        [f"k={o['k']}, level {o['level']}", *(percent(o[name]["success"]) for name in THREE)]
        for o in line["wrong"]
    ]
    head = [f"attacker's belief (true: k={line['k']}, level {line['level']})", *(f"`{a}`" for a in THREE)]
    return table(head, rows)


def draw(results: Results, folder: Path) -> None:
    """Draw every figure; none may be too large for a page."""
    pen = figures.Pen(folder)
    figures.linkage(pen, results)
    figures.cumulative(pen, results, compared(results)[1])
    figures.final_size(pen, results)
    figures.over_time(pen, results, "figure-09", "release_rate_by_tenths", "released of read (%)", False)
    figures.utility(pen, results)
    figures.speed(pen, results)
    figures.over_time(pen, results, "figure-13", "delay_by_tenths", "mean delay (records)", True)
    figures.memory(pen, results)
    figures.depth(pen, results, PAPER_CATEGORIES)
    figures.stronger(pen, results)
    heavy = [file.name for file in folder.glob("*.svg") if file.stat().st_size > LARGEST_FIGURE]
    if heavy:
        raise SystemExit(f"figures above {LARGEST_FIGURE:,} bytes: {', '.join(sorted(heavy))}")


def write(path: Path) -> None:
    """Draw and write the page; a quick run's go beside its results."""
    results = load(path)
    page = PAGE if path.stem == "paper-000" else path.with_suffix("") / PAGE.name
    page.parent.mkdir(parents=True, exist_ok=True)
    draw(results, page.parent / "figures-000")
    from benchmarks.paper_000_text import text

    page.write_text(text(results))
    print(f"wrote {page.name} and its figures")

"""Writes docs/papers/paper-000.md and its figures from the lines that `benchmarks.paper_000` measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import paper_000_figures as figures
from benchmarks.paper_000_figures import SHOWN_K, THREE, Key, Results
from benchmarks.paper_000_statistics import kolmogorov_smirnov

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
    return Results.of(about, lines)


def headline(results: Results) -> str:
    """Set the paper's headline numbers beside ours."""
    swaps, get = results.base("swap"), results.one
    mean = sum(o["microseconds_per_record"] for o in swaps) / len(swaps)
    at_190 = [o["microseconds_per_record"] for o in swaps if o["k"] == 190]
    every = [results.linked(name, "swap", level) for name in THREE for level in results.levels]
    above = [share for linked in every for k, share in linked.items() if k >= 100]
    flat, cohort = get("swap", 3), get("cohort", SHOWN_K, assign="arrival")
    by_topic, deeper = get("swap", SHOWN_K, 1), get("swap", SHOWN_K, 6)

    def micro(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f} µs"

    def deep(name: str) -> str:
        return percent(results.success(name, "swap", 3, 13))

    def loss(line: dict[str, Any] | None) -> str:
        return percent(line["profile"]["loss"]) if line else "–"

    return table(
        ["", "paper", "`swap` here", f"`cohort` here, k={SHOWN_K}"],
        [
            ["time per record, k=3, level 1", "18.99 µs", micro(flat and flat["microseconds_per_record"]),
             micro(cohort and cohort["microseconds_per_record"])],
            ["the same, mean of all settings", "33.68 µs", micro(mean), ""],
            ["the same, k=190, slowest level", "49.71 µs", micro(max(at_190, default=None)), ""],
            ["`link-profile`, k=3, level 13", "23.18 %", deep("link-profile"), ""],
            ["`link-random`, k=3, level 13", "18.36 %", deep("link-random"), ""],
            ["best of the three, k ≥ 100", "< 1 %", percent(max(above, default=None)), ""],
            [f"profile loss, level 1, k={SHOWN_K}", "42.03 %", loss(by_topic), loss(cohort)],
            [f"profile loss, level 6, k={SHOWN_K}", "< 1 %", loss(deeper), ""],
            ["categories in use", "194,505", f"{sum(results.about['added_categories'].values()):,}", ""],
        ],
    )  # fmt: skip


def compared(results: Results) -> tuple[str, dict[str, list[float]]]:
    """Repeat the paper's Kolmogorov-Smirnov comparison; give its table and the curves of figure 7."""
    rows, curves = [["paper", "", "0.08", "0.9977"]], {"1/k": [1 / k for k in results.ks]}
    for name, level in [(name, level) for name in THREE for level in (1, 13)] + [("link-repeat", 1)]:
        linked = results.linked(name, "swap", level)
        if not linked:
            continue
        gap, p_value = kolmogorov_smirnov([1 / k for k in linked], list(linked.values()))
        rows.append([f"`{name}`, level {level}", str(len(linked)), f"{gap:.2f}", f"{p_value:.4f}"])
        curves[f"{name}, level {level}"] = list(linked.values())
    return table(["", "k tried", "D", "p-value"], rows), curves


def grid(results: Results, name: str) -> str:
    """Write what an attack achieves on `swap`, k by level."""
    rows = [
        [f"k={k}", percent(1 / k), *(percent(results.success(name, "swap", k, at)) for at in results.levels)]
        for k in results.ks
    ]
    return table(["", "1/k", *(f"level {level}" for level in results.levels)], rows)


def cohort_grid(results: Results) -> str:
    """Write what `cohort` costs and what the paper's attacks achieve on it."""
    rows = []
    for assign in ("arrival", "similar"):
        for one in results.base("cohort", assign):
            facts = one["facts"]
            linked = [results.success(name, "cohort", one["k"], 1, assign) for name in THREE]
            rows.append([
                f"{assign}, k={one['k']}",
                percent(max((share for share in linked if share is not None), default=None)),
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


def tried(results: Results) -> list[tuple[str, Key]]:
    """Name the releases on which our own attacks were tried."""
    keys = [key for key, found in results.attacks.items() if "link-repeat" in found]
    keys.sort(key=lambda key: (key[0] != "swap", key[2], key[3] or "", key[1]))
    return [
        (f"`{method}` k={k}, {a or f'level {level}'}", (method, k, level, a)) for method, k, level, a in keys
    ]


def stronger(results: Results) -> str:
    """Write what attackers who see only the release achieve, against 1/k."""
    rows = []
    for name, key in tried(results):
        found = results.attacks[key]
        seen = {a: found[a] for a in RELEASE_ONLY if a in found and found[a]["success"] is not None}
        often = results.often(*key)
        holds = all(one["holds"] for one in [*seen.values(), *([often] if often else [])])
        best = max(seen, key=lambda a: seen[a]["success"])
        ours = [interval(seen[a]) if a in seen else "–" for a in RELEASE_ONLY[3:]]
        rest = [interval(often) if often else "–", f"`{best}`", "yes" if holds else "**no**"]
        rows.append([name, percent(1 / key[1]), *ours, *rest])
    names = [f"`{name}`" for name in RELEASE_ONLY[3:]]
    head = ["release", "1/k", *names, "`link-repeat`, strings asked 5+ times", "best of all six", "1/k holds"]
    return table(head, rows)


def unbounded(results: Results) -> str:
    """Write what attackers achieve whom nobody promised to stop."""
    rows = []
    for name, key in tried(results):
        found = [results.attacks[key].get(a) for a in UNBOUNDED]
        rows.append([name, *("–" if one is None else interval(one) for one in found)])
    return table(["release", *(f"`{a}`" for a in UNBOUNDED)], rows)


def wrong(results: Results) -> str:
    """Write what an attacker achieves who believes in another k or level."""
    line = results.wrong
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
    figures.attack_speed(pen, results)
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
    from benchmarks import paper_000_tables, paper_000_text

    page.write_text(paper_000_text.text(results))
    page.with_name("paper-000-tables.md").write_text(paper_000_tables.text(results))
    print(f"wrote {page.name}, its tables and its figures")

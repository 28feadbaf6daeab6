"""Writes docs/papers/paper-000-tables.md: every figure of paper 000 as a table, k by level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.paper_000_figures import THREE, Results
from benchmarks.paper_000_page import grid, percent, table

Line = dict[str, Any]
#: Figure, what it shows, what the paper says about it, and how to spell one cell.
MEASURES: list[tuple[str, str, str, Callable[[Line], str]]] = [
    ("8", "mean number of records that a category still holds at the end",
     "higher for low levels, tends to k for deep ones",
     lambda o: "–" if o["method"] == "cohort" else f"{o['final_held']:.1f}"),
    ("9", "share of records released by the end", "tends to 100 % at any level",
     lambda o: percent(o["release_rate"])),
    ("10", "mean profile loss", "42.03 % at level 1, under 1 % from level 6, whatever k",
     lambda o: percent(o["profile"]["loss"])),
    ("11", "microseconds per record", "18.99 at k=3 and level 1, 49.71 at k=190, 33.68 on average",
     lambda o: f"{o['microseconds_per_record']:.2f}"),
    ("13", "mean delay in records",
     "grows with the level, then stays: under 40,000 up to level 6, under 80,000 above",
     lambda o: f"{o['delay_mean']:,.0f}"),
    ("14", "megabytes of arrays that the method holds", "grows with the categories in use, times k",
     lambda o: f"{o['method_bytes'] / 1e6:.1f}"),
]  # fmt: skip


def text(results: Results) -> str:
    """Put the page together."""
    parts = [
        "<!-- Written by `python -m benchmarks.paper_000`; do not edit by hand. -->\n"
        "# Paper 000: the figures as tables",
        "[Back to what they mean](paper-000.md). `swap` by k and level, `cohort` by k. A dash: not tried.",
        *(f"## Figure 6: `{name}`\n\n{grid(results, name)}" for name in THREE),
    ]
    for number, what, paper, spell in MEASURES:
        parts.append(f"## Figure {number}: {what}\n\nThe paper: {paper}.\n\n{by_k(results, spell)}")
    parts.append(f"## Figure 12: microseconds per record of the attacks\n\n{attack_times(results)}")
    return "\n\n".join(parts) + "\n"


def by_k(results: Results, spell: Callable[[Line], str]) -> str:
    """Write a measure by k: `swap` at each level, `cohort` in both ways of seating."""
    rows = []
    for k in results.ks:
        swaps = [results.one("swap", k, level) for level in results.levels]
        cohorts = [results.one("cohort", k, 1, assign) for assign in ("arrival", "similar")]
        rows.append([f"k={k}", *("–" if one is None else spell(one) for one in swaps + cohorts)])
    head = ["", *(f"level {level}" for level in results.levels), "cohort, arrival", "cohort, similar"]
    return table(head, rows)


def attack_times(results: Results) -> str:
    """Write what the attacks cost at level 1; the paper shows no numbers, only that the first is fastest."""
    rows = []
    for k in results.ks:
        found = [results.attacks.get(("swap", k, 1, None), {}).get(name) for name in THREE]
        rows.append([f"k={k}", *("–" if f is None else f"{1e6 * f['seconds'] / f['n']:.2f}" for f in found)])
    return table(["level 1", *(f"`{name}`" for name in THREE)], rows)

"""Figures of paper 000."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from papers.common.figures import FigureFolder
from papers.p000.results import PAPER_CATEGORIES, SHOWN_K, THREE, Results
from papers.p000.statistics import compared_samples

RED, ASSIGN_LINES = "crimson", {"arrival": "-", "similar": "--"}  # how `cohort` is drawn
Points = dict[int, float]


def draw(results: Results, path: Path) -> None:
    """Draw every figure."""
    folder = FigureFolder(path)
    for figure in (linkage, cumulative, final_size, utility, speed, attack_speed, memory, depth, stronger):
        figure(folder, results)
    over_time(folder, results, "figure-09", "release_rate_by_tenths", "released of read (%)", False)
    over_time(folder, results, "figure-13", "delay_by_tenths", "mean delay (records)", True)


def column(results: Results, name: str, level: int) -> Points:
    """Return a measure of `swap` at a level, by k."""
    return {one["k"]: float(one[name]) for one in results.base("swap") if one["level"] == level}


def level_lines(folder: FigureFolder, axes: Any, results: Results, points: Callable[[int], Points]) -> None:
    """Draw one line for each level over k."""
    for level, colour in zip(results.levels, folder.colours(len(results.levels)), strict=True):
        found = points(level)
        if found:
            axes.plot(*zip(*found.items(), strict=True), ".-", color=colour, label=f"swap, level {level}")
    axes.set_xlabel("k")


def cohort_lines(axes: Any, points: Callable[[str], Points]) -> None:
    """Draw `cohort` over k, for both assignments."""
    for assign, style in ASSIGN_LINES.items():
        found = points(assign)
        if found:
            axes.plot(
                *zip(*found.items(), strict=True), "s", ls=style, ms=3, color=RED, label=f"cohort, {assign}"
            )


def linkage(folder: FigureFolder, results: Results) -> None:
    """Figure 6: record linkage of the paper's three attacks."""
    figure, rows = folder.subplots(3, 10, 3.4)
    for axes, name in zip(rows[0], THREE, strict=True):
        level_lines(folder, axes, results, partial(_percent_linked, results, name, "swap"))
        cohort_lines(axes, partial(_percent_linked, results, name, "cohort", 1))
        axes.plot(results.ks, [100 / k for k in results.ks], "k:", label="1/k")
        axes.set(title=name, xscale="log", yscale="log", ylabel="records linked (%)")
    rows[0][-1].legend(fontsize=6)
    folder.save(figure, "figure-06")


def _percent_linked(
    results: Results, name: str, method: str, level: int, assign: str | None = None
) -> Points:
    return {k: 100 * share for k, share in results.linked(name, method, level, assign).items()}


def cumulative(folder: FigureFolder, results: Results) -> None:
    """Figure 7: the cumulative shares that the Kolmogorov-Smirnov test compares."""
    figure, rows = folder.subplots()
    for name, values in compared_samples(results).items():
        ordered = sorted(values)
        steps = [(place + 1) / len(ordered) for place in range(len(ordered))]
        rows[0][0].step(ordered, steps, where="post", label=name, ls=":" if name == "1/k" else "-")
    rows[0][0].set(xscale="log", xlabel="share of records linked", ylabel="cumulative share of the k tried")
    rows[0][0].legend(fontsize=7)
    folder.save(figure, "figure-07")


def final_size(folder: FigureFolder, results: Results) -> None:
    """Figure 8: records that a category still holds at the end."""
    figure, rows = folder.subplots()
    level_lines(folder, rows[0][0], results, partial(column, results, "final_held"))
    rows[0][0].plot(results.ks, results.ks, "k:", label="k")
    rows[0][0].set(xscale="log", yscale="log", ylabel="mean final |Q|")
    rows[0][0].legend(fontsize=7)
    folder.save(figure, "figure-08")


def over_time(folder: FigureFolder, results: Results, name: str, column: str, label: str, log: bool) -> None:
    """Figures 9 and 13: what changes while the log flows in."""
    figure, rows = folder.subplots()
    axes, tenths = rows[0][0], range(10, 101, 10)
    scale = 100 if column == "release_rate_by_tenths" else 1
    for level, colour in zip(results.levels, folder.colours(len(results.levels)), strict=True):
        line = results.one("swap", SHOWN_K, level)
        axes.plot(tenths, [scale * v for v in line[column]], ".-", color=colour, label=f"swap, level {level}")
    for assign, style in ASSIGN_LINES.items():
        line = results.one("cohort", SHOWN_K, assign=assign)
        if line:
            axes.plot(tenths, [scale * v for v in line[column]], "s", ls=style, ms=3, color=RED,
                      label=f"cohort, {assign}")  # fmt: skip
    axes.set(
        xlabel="log read (%)", ylabel=label, title=f"k = {SHOWN_K}", yscale="symlog" if log else "linear"
    )
    axes.legend(fontsize=7)
    folder.save(figure, name)


def utility(folder: FigureFolder, results: Results) -> None:
    """Figure 10: how far profiles moved, over the levels."""
    figure, rows = folder.subplots(2, 8, 3.4)
    parts = (
        ("distance", 1, "mean earth mover's distance"),
        ("loss", 100, "loss of the largest possible (%)"),
    )
    for axes, (name, scale, label) in zip(rows[0], parts, strict=True):
        for k in (3, SHOWN_K, 100):
            lines = [one for level in results.levels if (one := results.one("swap", k, level))]
            if lines:
                values = [scale * one["profile"][name] for one in lines]
                axes.plot([one["level"] for one in lines], values, ".-", label=f"swap, k {k}")
        for assign, style in ASSIGN_LINES.items():
            if line := results.one("cohort", SHOWN_K, assign=assign):
                axes.axhline(scale * line["profile"][name], color=RED, ls=style,
                             label=f"cohort, k {SHOWN_K}, {assign}")  # fmt: skip
        axes.set(xlabel="level", ylabel=label, ylim=(0, None))
    largest = results.base("swap")[0]["profile"]["largest_distance"]
    rows[0][0].set_title(f"the largest possible is {largest:.0f}", fontsize=8)
    rows[0][1].legend(fontsize=7)
    folder.save(figure, "figure-10")


def speed(folder: FigureFolder, results: Results) -> None:
    """Figure 11: microseconds per record of the methods."""
    figure, rows = folder.subplots()
    name = "microseconds_per_record"
    level_lines(folder, rows[0][0], results, partial(column, results, name))
    cohort_lines(rows[0][0], lambda assign: {o["k"]: o[name] for o in results.base("cohort", assign)})
    rows[0][0].set(ylabel="µs per record", ylim=(0, None))
    rows[0][0].legend(fontsize=6)
    folder.save(figure, "figure-11")


def attack_speed(folder: FigureFolder, results: Results) -> None:
    """Figure 12: microseconds per record of the paper's three attacks."""
    figure, rows = folder.subplots(3, 10, 3.2)
    for axes, name in zip(rows[0], THREE, strict=True):
        level_lines(folder, axes, results, partial(_attack_time, results, name))
        axes.set(title=name, ylabel="µs per record", ylim=(0, None))
    rows[0][-1].legend(fontsize=6)
    folder.save(figure, "figure-12")


def _attack_time(results: Results, name: str, level: int) -> Points:
    found = ((k, results.attacks.get(("swap", k, level, None), {}).get(name)) for k in results.ks)
    return {k: 1e6 * one["seconds"] / one["n"] for k, one in found if one and one["n"]}


def memory(folder: FigureFolder, results: Results) -> None:
    """Figure 14: the arrays that a method holds."""
    figure, rows = folder.subplots()
    axes = rows[0][0]
    for k, colour in zip(results.ks, folder.colours(len(results.ks)), strict=True):
        lines = [one for level in results.levels if (one := results.one("swap", k, level))]
        axes.plot([o["level"] for o in lines], [o["method_bytes"] / 1e6 for o in lines], ".-", color=colour,
                  label=f"swap, k {k}")  # fmt: skip
    axes.set(xlabel="level", ylabel="arrays of the method (MB)", ylim=(0, None))
    axes.legend(fontsize=6)
    folder.save(figure, "figure-14")


def depth(folder: FigureFolder, results: Results) -> None:
    """Table 3: how many categories each level adds."""
    figure, rows = folder.subplots()
    added = results.about["added_categories"]
    levels = [level for level in range(1, 14) if added[str(level)]]
    rows[0][0].plot(range(1, 14), PAPER_CATEGORIES, "k.--", label="paper (ODP)")
    rows[0][0].plot(
        levels, [added[str(level)] for level in levels], "o-", ms=3, label="made-up log (WordNet)"
    )
    rows[0][0].set(xlabel="level", ylabel="categories added", yscale="log")
    rows[0][0].legend(fontsize=7)
    folder.save(figure, "table-3")


def stronger(folder: FigureFolder, results: Results) -> None:
    """What the paper did not try: windows and repeated strings, on `swap` and on `cohort`."""
    figure, rows = folder.subplots(2, 8, 3.4)
    for axes, (method, assign) in zip(rows[0], (("swap", None), ("cohort", "arrival")), strict=True):
        for name in ("link-window", "link-repeat", "link-time"):
            found = _percent_linked(results, name, method, 1, assign)
            if found:
                axes.plot(*zip(*found.items(), strict=True), ".-", label=name)
        often = {
            k: 100 * part["success"] for k in results.ks if (part := results.often(method, k, 1, assign))
        }
        if often:
            axes.plot(*zip(*often.items(), strict=True), ".--", label="link-repeat, strings asked 5+ times")
        axes.plot(results.ks, [100 / k for k in results.ks], "k:", label="1/k")
        title = f"{method}, level 1" if method == "swap" else f"{method}, {assign}"
        axes.set(title=title, xscale="log", yscale="log", ylim=(0.3, 110), xlabel="k")
        axes.set_ylabel("records linked (%)")
    rows[0][0].legend(fontsize=7)
    folder.save(figure, "figure-stronger")

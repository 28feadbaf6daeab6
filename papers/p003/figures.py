"""Figures of chapter 5 of paper 003."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from papers.common.figures import FigureFolder, legend, log_axis, plot
from papers.p003.results import Results, by_lot, gaps

Look = tuple[str, str, str, str]  # label, colour, marker, line

#: Colours for colour-blind readers; markers and lines differ too.
AGGREGATIONS: dict[str, Look] = {
    "semantic": ("semantic", "#0072B2", "o", "-"),
    "topic": ("topic", "#009E73", "s", "-"),
    "topic five": ("topic, five categories", "#009E73", "v", "--"),
    "syntactic": ("syntactic", "#D55E00", "^", "-"),
    "plain": ("plain", "#000000", "x", "-"),
}
REMOVALS: dict[str, Look] = {
    "threshold": ("threshold-dp, over d", "#CC79A7", "D", "-"),
    "graph": ("graph-suppress, over K", "#E69F00", "P", "-"),
    "graph, no density": ("… without its last step", "#B8860B", "+", "--"),
}
MOST_COMPARED, MOST_LEVELS, TOPIC_KS = 10, 5, (2, 3, 4, 5)


class Compared(NamedTuple):
    """A figure of 5.5 that sets all methods side by side."""

    column: str
    label: str
    scale: float = 1
    bound: bool = False


COMPARED = {
    "5.13": Compared("partition_loss.loss_80", "IL, 80 groups (%)"),
    "5.14": Compared("top_preserved.queries_10", "of the ten commonest queries (%)", 100),
    "5.15": Compared("top_preserved.categories_10", "of the ten commonest categories (%)", 100),
    "5.16": Compared("record_linkage.queries", "RL by queries (%)", bound=True),
    "5.17": Compared("record_linkage.categories", "RL by categories (%)", bound=True),
    "5.18": Compared("profile_exposure.queries_mean", "PEL by queries (%)", bound=True),
    "5.19": Compared("profile_exposure.categories_mean", "PEL by categories (%)", bound=True),
}


def draw(results: Results, path: Path) -> None:
    """Draw every figure."""
    folder = FigureFolder(path)
    for figure in (exposure, loss_ratio, clusterings, difference, reached, remain, cost):
        figure(folder, results)
    frequencies(folder, results, "5.7", "top_queries", "query")
    frequencies(folder, results, "5.8", "top_words", "word")
    for number, what in COMPARED.items():
        compared(folder, results, number, what)


def file_of(number: str) -> str:
    """Return the file name of a figure: `figure-5-03` for 5.3."""
    chapter, _, place = number.partition(".")
    return f"figure-{chapter}-{int(place):02d}"


def bounds(axes: Any, ks: Iterable[float]) -> None:
    """Draw 100/k."""
    tried = sorted(set(ks))
    if tried:
        axes.plot(tried, [100 / k for k in tried], "k:", lw=1.2, label="100/k")


def exposure(folder: FigureFolder, results: Results) -> None:
    """Figure 5.3: PEL of the syntactic method beside 100/k."""
    figure, rows = folder.subplots()
    axes = rows[0][0]
    points = results.points("syntactic", "profile_exposure.queries_mean", 10)
    plot(axes, points, *AGGREGATIONS["syntactic"][1:], "syntactic")
    bounds(axes, (k for k, _ in points))
    axes.set(xlabel="k", ylabel="PEL, mean (%)", ylim=(0, None))
    legend(axes)
    folder.save(figure, file_of("5.3"))


def loss_ratio(folder: FigureFolder, results: Results) -> None:
    """Figure 5.4: ILR of the syntactic method, with the two points that the thesis names."""
    figure, rows = folder.subplots()
    axes = rows[0][0]
    for statistic, line in (("mean", "-"), ("median", ":")):
        points = results.points("syntactic", f"information_loss_ratio.queries_{statistic}")
        plot(axes, points, *AGGREGATIONS["syntactic"][1:3], line, f"syntactic, {statistic}")
    axes.plot([3, 35], [10, 50], "k*", ms=8, label="thesis")
    axes.set(xlabel="k", ylabel="ILR (%)", ylim=(0, None))
    legend(axes)
    folder.save(figure, file_of("5.4"))


def clusterings(folder: FigureFolder, results: Results) -> None:
    """Figure 5.5: how alike k-means groups people before and after, over the number of groups."""
    figure, rows = folder.subplots(2, 8.4, 3.8)
    for axes, name in zip(rows[0], ("rand", "jaccard"), strict=True):
        for k, colour in zip(results.mined_ks, folder.colours(len(results.mined_ks)), strict=True):
            plot(axes, results.index(k, name), colour, ".", "-", f"k = {k}")
            plot(axes, results.index(k, name, own=True), colour, "x", "", "")
        yardstick = results.index(1, name)
        plot(axes, yardstick, "#000000", ".", "--", "original, other start")
        lot = [(groups, by_lot(name, groups, results.about["users"])) for groups, _ in yardstick]
        plot(axes, lot, "#888888", "", ":", "by lot, equal sizes")
        log_axis(axes, "groups of k-means", (2, 5, 10, 25, 50, 100, 200, 500))
        axes.set(ylabel=f"{name.capitalize()} index", ylim=(0, 1.03))
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=7)
    folder.save(figure, file_of("5.5"))


def difference(folder: FigureFolder, results: Results) -> None:
    """Figure 5.6: what both indices lose from k = 3 to k = 50."""
    figure, rows = folder.subplots()
    axes = rows[0][0]
    for name, colour, line in (("jaccard", "#0072B2", "-"), ("rand", "#D55E00", ":")):
        plot(axes, gaps(results, name), colour, ".", line, name.capitalize())
    axes.axhline(0, color="#000000", lw=0.6)
    log_axis(axes, "groups of k-means", (2, 5, 10, 25, 50, 100, 200, 500))
    axes.set_ylabel("index at k = 3 less that at k = 50")
    legend(axes)
    folder.save(figure, file_of("5.6"))


def frequencies(folder: FigureFolder, results: Results, number: str, column: str, what: str) -> None:
    """Figures 5.7 and 5.8: how often the ten commonest come; their texts are not shown."""
    figure, rows = folder.subplots(1, 6.4, 3.8)
    axes = rows[0][0]
    for place, colour in enumerate(folder.colours(10)):
        label = f"{what} {place + 1}"
        plot(axes, results.shares("syntactic", column, place), colour, ".", "-", label)
    log_axis(axes, "k (1: the original)", (1, 2, 3, 5, 10, 20, 30, 50))
    axes.set(yscale="log", ylabel=f"of a thousand {what} uses")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="y", which="minor", labelsize=7)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    folder.save(figure, file_of(number))


def reached(folder: FigureFolder, results: Results) -> None:
    """Figure 5.10: the share of queries that are classified down to each level."""
    figure, rows = folder.subplots()
    levels = {int(level): 100 * share for level, share in results.about["levels"].items()}
    rows[0][0].bar(levels.keys(), levels.values(), color="#0072B2", label="here")
    rows[0][0].plot([5], [57], "k*", ms=8, label="thesis")
    rows[0][0].set(xlabel="level", ylabel="queries classified down to it (%)")
    rows[0][0].set_xticks(list(levels))
    legend(rows[0][0])
    folder.save(figure, file_of("5.10"))


def remain(folder: FigureFolder, results: Results) -> None:
    """Figure 5.11: SRP by level, with the first category and with the first five."""
    figure, rows = folder.subplots(len(TOPIC_KS), 9, 3)
    levels = range(1, MOST_LEVELS + 1)
    for axes, k in zip(rows[0], TOPIC_KS, strict=True):
        for shift, kind, colour in ((-0.2, "topic", "#00664B"), (0.2, "topic five", "#7FD1B9")):
            shares = [100 * (results.value(kind, k, f"semantic_remain.level_{n}") or 0.0) for n in levels]
            label = "first category" if kind == "topic" else "first five"
            axes.bar([level + shift for level in levels], shares, 0.4, color=colour, label=label)
        axes.axhline(100 / k, color="#000000", ls=":", lw=1.2, label="100/k")
        axes.set(xlabel="level", title=f"k = {k}", ylim=(0, 100), xticks=list(levels))
    rows[0][0].set_ylabel("SRP (%)")
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    folder.save(figure, file_of("5.11"))


def cost(folder: FigureFolder, results: Results) -> None:
    """Figure 5.12: processor time with one category and with five."""
    figure, rows = folder.subplots()
    axes = rows[0][0]
    for kind in ("topic", "topic five"):
        label = "first category" if kind == "topic" else "first five"
        plot(axes, results.points(kind, "cpu_seconds", max(TOPIC_KS)), *AGGREGATIONS[kind][1:], label)
    axes.set(xlabel="k", ylabel="processor time (s)", ylim=(0, None), xticks=list(TOPIC_KS))
    legend(axes)
    folder.save(figure, file_of("5.12"))


def compared(folder: FigureFolder, results: Results, number: str, what: Compared) -> None:
    """Figures 5.13 to 5.19: aggregations over k, and removals over their own parameters."""
    figure, rows = folder.subplots(2, 8.6, 3.9)
    sides = ((AGGREGATIONS, MOST_COMPARED), (REMOVALS, float("inf")))
    for axes, (kinds, most) in zip(rows[0], sides, strict=True):
        for kind, (label, colour, marker, line) in kinds.items():
            points = results.points(kind, what.column, most, what.scale)
            plot(axes, points, colour, marker, line, label)
    if what.bound:
        ks = {k for kind in AGGREGATIONS for k in results.ats(kind, MOST_COMPARED)}
        bounds(rows[0][0], ks)
    if number == "5.13":
        chance(rows[0], results, f"{what.column}_by_chance")
    low, high = zip(*(axes.get_ylim() for axes in rows[0]), strict=True)
    for axes in rows[0]:
        if what.bound:
            axes.set_ylim(bottom=-1)
        else:
            axes.set_ylim((-3, 103) if what.scale == 100 else (min(low), max(high)))
    rows[0][0].set(xlabel="k", ylabel=what.label, title="aggregations")
    rows[0][1].set_title("removals")
    log_axis(rows[0][1], "d, or K", (1, 2, 5, 10, 20, 40))
    left, right = (axes.get_legend_handles_labels() for axes in rows[0])
    named = [[*first, *second] for first, second in zip(left, right, strict=True)]
    figure.legend(*named, loc="outside lower center", ncols=5, fontsize=7)
    folder.save(figure, file_of(number))


def chance(panels: Any, results: Results, column: str) -> None:
    """Draw what groups lose that have nothing to do with each other."""
    tried: dict[float, list[float]] = {}
    for kind in AGGREGATIONS:
        for k, value in results.points(kind, column, MOST_COMPARED):
            tried.setdefault(k, []).append(value)
    if tried:
        ks = sorted(tried)
        low, high = ([edge(tried[k]) for k in ks] for edge in (min, max))
        panels[0].fill_between(ks, low, high, color="#888888", alpha=0.45, lw=1, label="groups by lot")
    for kind, (_, colour, _, _) in REMOVALS.items():
        plot(panels[1], results.points(kind, column), colour, "", ":", "")

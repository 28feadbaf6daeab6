"""Draws the figures of thesis 003, chapter 5, from the lines that `benchmarks.paper_003` measured."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.paper_000_figures import Pen
from benchmarks.paper_000_page import LARGEST_FIGURE
from benchmarks.paper_002_figures import plot

Points = list[tuple[float, float]]
Look = tuple[str, str, str, str]  # label, colour, marker, line

#: Colours that people who see few colours can tell apart; markers and lines differ too.
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
#: What a release without any query stands for: it tells nothing, and it keeps nothing.
EMPTY = {
    "profile_exposure": 0.0,
    "record_linkage": 0.0,
    "linked": 0.0,
    "top_preserved": 0.0,
    "semantic_remain": 0.0,
    "information_loss_ratio": 100.0,
}


@dataclass(frozen=True)
class Results:
    """One run: what the log was, the lines by name, and the clusterings of Figure 5.5 by k."""

    about: dict[str, Any]
    machine: dict[str, Any]
    lines: dict[str, dict[str, Any]]
    mining: dict[int, dict[str, Any]]
    seconds: float

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read the lines of a run."""
        return cls.of([json.loads(text) for text in path.read_text().splitlines()])

    @classmethod
    def of(cls, lines: list[dict[str, Any]]) -> Results:
        """Sort the lines of a run, of which many may be missing so far."""
        first, *rest = lines
        named = {one["name"]: one for one in rest if one.get("name")}
        mined = named.pop("mining", {"lines": []})
        seconds = sum(one["seconds"] for one in rest if one.get("part") == "time")
        by_k = {one["k"]: one for one in mined["lines"]}
        return cls(first["about"], first["machine"], named, by_k, seconds)

    def value(self, kind: str, at: int, column: str) -> float | None:
        """Give one number of a line, or None where it was not measured or means nothing."""
        line = self.lines.get(f"{kind} {at}")
        if line is None:
            return None
        found = line.get(column)
        if found is None and not line["rows"]:
            found = EMPTY.get(column.partition(".")[0])
        return None if found is None else float(found)

    def ats(self, kind: str, most: float = float("inf")) -> list[int]:
        """List the k, or what stands in its place, that were tried."""
        return sorted(one["at"] for one in self.lines.values() if one["kind"] == kind and one["at"] <= most)

    def points(self, kind: str, column: str, most: float = float("inf"), scale: float = 1) -> Points:
        """Give a number over k, or over what stands in its place."""
        found = ((at, self.value(kind, at, column)) for at in self.ats(kind, most))
        return [(at, scale * value) for at, value in found if value is not None]

    def shares(self, kind: str, column: str, place: int) -> Points:
        """Give how often one of the ten commonest comes, for a thousand; k = 1 is the original."""
        rows = [(at, self.lines[f"{kind} {at}"][column]) for at in self.ats(kind)]
        known = [(at, row[place]) for at, row in rows if place < len(row)]
        return [(1.0, known[0][1][0]), *((at, pair[1]) for at, pair in known)] if known else []

    def index(self, k: int, name: str, own: bool = False) -> Points:
        """Give `rand` or `jaccard` over the number of groups; `own`: with the section's aggregation."""
        line = self.mining.get(k, {})
        found = (line.get("own", {}) if own else line).get(name, {})
        return sorted((float(groups), float(value)) for groups, value in found.items())

    @property
    def mined_ks(self) -> list[int]:
        """List the k whose releases were clustered."""
        return sorted(k for k in self.mining if k > 1)


def by_lot(name: str, groups: float, people: int) -> float:
    """Give the index to expect of two partitions by lot, into groups of equal size."""
    together = max(people / groups - 1, 0) / (people - 1)
    return 1 - 2 * together * (1 - together) if name == "rand" else together / (2 - together)


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


def draw(results: Results, folder: Path) -> None:
    """Draw all figures, and see that none is too large."""
    pen = Pen(folder)
    exposure(pen, results)
    loss_ratio(pen, results)
    clusterings(pen, results)
    difference(pen, results)
    frequencies(pen, results, "5.7", "top_queries", "query")
    frequencies(pen, results, "5.8", "top_words", "word")
    reached(pen, results)
    remain(pen, results)
    cost(pen, results)
    for number, what in COMPARED.items():
        compared(pen, results, number, what)
    for path in sorted(folder.glob("*.svg")):
        if path.stat().st_size > LARGEST_FIGURE:
            raise ValueError(f"{path.name} is larger than {LARGEST_FIGURE:,} bytes")


def file_of(number: str) -> str:
    """Name the file of a figure: `figure-5-03` for 5.3."""
    chapter, _, place = number.partition(".")
    return f"figure-{chapter}-{int(place):02d}"


def bounds(axes: Any, ks: Iterable[float]) -> None:
    """Draw 100/k."""
    tried = sorted(set(ks))
    if tried:
        axes.plot(tried, [100 / k for k in tried], "k:", lw=1.2, label="100/k")


def legend(axes: Any, size: float = 7) -> None:
    """Explain the lines, if there are any."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=size)


def logged(axes: Any, name: str, ticks: Iterable[int]) -> None:
    """Give an axis of whole numbers a logarithmic scale that names them."""
    found = list(ticks)
    axes.set(xscale="log", xlabel=name)
    axes.set_xticks(found, labels=[str(tick) for tick in found])
    axes.xaxis.minorticks_off()


def exposure(pen: Pen, results: Results) -> None:
    """Figure 5.3: PEL of the syntactic method beside 100/k."""
    figure, rows = pen.sheet()
    axes = rows[0][0]
    points = results.points("syntactic", "profile_exposure.queries_mean", 10)
    plot(axes, points, *AGGREGATIONS["syntactic"][1:], "syntactic")
    bounds(axes, (k for k, _ in points))
    axes.set(xlabel="k", ylabel="PEL, mean (%)", ylim=(0, None))
    legend(axes)
    pen.keep(figure, file_of("5.3"))


def loss_ratio(pen: Pen, results: Results) -> None:
    """Figure 5.4: ILR of the syntactic method, with the two points that the thesis names."""
    figure, rows = pen.sheet()
    axes = rows[0][0]
    for statistic, line in (("mean", "-"), ("median", ":")):
        points = results.points("syntactic", f"information_loss_ratio.queries_{statistic}")
        plot(axes, points, *AGGREGATIONS["syntactic"][1:3], line, f"syntactic, {statistic}")
    axes.plot([3, 35], [10, 50], "k*", ms=8, label="thesis")
    axes.set(xlabel="k", ylabel="ILR (%)", ylim=(0, None))
    legend(axes)
    pen.keep(figure, file_of("5.4"))


def clusterings(pen: Pen, results: Results) -> None:
    """Figure 5.5: how alike k-means groups people before and after, over the number of groups."""
    figure, rows = pen.sheet(2, 8.4, 3.8)
    for axes, name in zip(rows[0], ("rand", "jaccard"), strict=True):
        for k, colour in zip(results.mined_ks, pen.colours(len(results.mined_ks)), strict=True):
            plot(axes, results.index(k, name), colour, ".", "-", f"k = {k}")
            plot(axes, results.index(k, name, own=True), colour, "x", "", "")
        yardstick = results.index(1, name)
        plot(axes, yardstick, "#000000", ".", "--", "original, other start")
        lot = [(groups, by_lot(name, groups, results.about["users"])) for groups, _ in yardstick]
        plot(axes, lot, "#888888", "", ":", "by lot, equal sizes")
        logged(axes, "groups of k-means", (2, 5, 10, 25, 50, 100, 200, 500))
        axes.set(ylabel=f"{name.capitalize()} index", ylim=(0, 1.03))
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=7)
    pen.keep(figure, file_of("5.5"))


def difference(pen: Pen, results: Results) -> None:
    """Figure 5.6: what both indices lose from k = 3 to k = 50."""
    figure, rows = pen.sheet()
    axes = rows[0][0]
    for name, colour, line in (("jaccard", "#0072B2", "-"), ("rand", "#D55E00", ":")):
        plot(axes, gaps(results, name), colour, ".", line, name.capitalize())
    axes.axhline(0, color="#000000", lw=0.6)
    logged(axes, "groups of k-means", (2, 5, 10, 25, 50, 100, 200, 500))
    axes.set_ylabel("index at k = 3 less that at k = 50")
    legend(axes)
    pen.keep(figure, file_of("5.6"))


def gaps(results: Results, name: str) -> Points:
    """Give the index at k = 3 less that at k = 50, over the number of groups."""
    large = dict(results.index(50, name))
    return [(groups, value - large[groups]) for groups, value in results.index(3, name) if groups in large]


def frequencies(pen: Pen, results: Results, number: str, column: str, what: str) -> None:
    """Figures 5.7 and 5.8: how often the ten commonest come; their texts are not shown."""
    figure, rows = pen.sheet(1, 6.4, 3.8)
    axes = rows[0][0]
    for place, colour in enumerate(pen.colours(10)):
        label = f"{what} {place + 1}"
        plot(axes, results.shares("syntactic", column, place), colour, ".", "-", label)
    logged(axes, "k (1: the original)", (1, 2, 3, 5, 10, 20, 30, 50))
    axes.set(yscale="log", ylabel=f"of a thousand {what} uses")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="y", which="minor", labelsize=7)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    pen.keep(figure, file_of(number))


def reached(pen: Pen, results: Results) -> None:
    """Figure 5.10: the share of queries that are classified down to each level."""
    figure, rows = pen.sheet()
    levels = {int(level): 100 * share for level, share in results.about["levels"].items()}
    rows[0][0].bar(levels.keys(), levels.values(), color="#0072B2", label="here")
    rows[0][0].plot([5], [57], "k*", ms=8, label="thesis")
    rows[0][0].set(xlabel="level", ylabel="queries classified down to it (%)")
    rows[0][0].set_xticks(list(levels))
    legend(rows[0][0])
    pen.keep(figure, file_of("5.10"))


def remain(pen: Pen, results: Results) -> None:
    """Figure 5.11: SRP by level, with the first category and with the first five."""
    figure, rows = pen.sheet(len(TOPIC_KS), 9, 3)
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
    pen.keep(figure, file_of("5.11"))


def cost(pen: Pen, results: Results) -> None:
    """Figure 5.12: processor time with one category and with five."""
    figure, rows = pen.sheet()
    axes = rows[0][0]
    for kind in ("topic", "topic five"):
        label = "first category" if kind == "topic" else "first five"
        plot(axes, results.points(kind, "cpu_seconds", max(TOPIC_KS)), *AGGREGATIONS[kind][1:], label)
    axes.set(xlabel="k", ylabel="processor time (s)", ylim=(0, None), xticks=list(TOPIC_KS))
    legend(axes)
    pen.keep(figure, file_of("5.12"))


def compared(pen: Pen, results: Results, number: str, what: Compared) -> None:
    """Figures 5.13 to 5.19: aggregations over k, and removals over their own parameters."""
    figure, rows = pen.sheet(2, 8.6, 3.9)
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
    logged(rows[0][1], "d, or K", (1, 2, 5, 10, 20, 40))
    left, right = (axes.get_legend_handles_labels() for axes in rows[0])
    named = [[*first, *second] for first, second in zip(left, right, strict=True)]
    figure.legend(*named, loc="outside lower center", ncols=5, fontsize=7)
    pen.keep(figure, file_of(number))


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

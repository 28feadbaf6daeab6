"""Figures of chapter 4 of paper 003, and of our attacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from papers.common.figures import FigureFolder, legend, log_axis, plot
from papers.p003_crowd.results import AVERAGES, DEVIATIONS, FRIENDS, HOPS, PREVIOUS, Results
from papers.p003_crowd.run import BEST, COLLUDING, EXPONENTS, FLAT, LINKED, NOTHING, SELFISH, spelled

#: Colours for colour-blind readers; markers and lines differ too.
LOOKS = {"back": ("#0072B2", "o"), "no back": ("#D55E00", "^")}
WAYS = LOOKS | {FLAT: ("#E69F00", "v")}
ENGINES = {
    "knows nothing else": (("engine", "linked", "success"), "#000000", "x"),
    "knows the network": (("engine", "linked_with_network", "success"), "#009E73", "s"),
    "knows network and rules": (("exact", "success"), "#CC79A7", "D"),
}
CAPTIONS = {
    "figure-4-1": "Position in the group and its deviation, by number of friends",
    "figure-4-2": "Exposed honest users over the share of selfish users",
    "figure-4-3": "Share of their own queries that selfish users submit, by number of friends",
    "engine": "Authors whom the search engine names, over the number of their queries that it can link",
    "colluding": "Queries that colluding members see, and those whose authors they name",
    "hops": "Hops over the exponent of the power law",
}


def draw(results: Results, path: Path) -> None:
    """Draw every figure."""
    folder = FigureFolder(path)
    for figure in (positions, selfish, isolated, engines, colluding, hops):
        figure(folder, results)


def percents(values: dict[Any, float]) -> list[tuple[Any, float]]:
    """Return shares in percent, as points."""
    return [(at, 100 * value) for at, value in values.items()]


def positions(folder: FigureFolder, results: Results) -> None:
    """Figure 4.1 and Table 4.5."""
    figure, rows = folder.subplots(2, 8.4, 3.6)
    thesis = {"average": AVERAGES, "deviation": DEVIATIONS}
    for axes, column in zip(rows[0], thesis, strict=True):
        for reading, (colour, marker) in WAYS.items():
            found = results.friends("cut", spelled(BEST), reading, "position", "*", column)
            plot(axes, found.items(), colour, marker, "-", f"here, {reading}")
        plot(axes, zip(FRIENDS, thesis[column], strict=True), "#000000", "*", "-", "thesis")
        axes.set(xlabel="friends", ylabel=column, xticks=list(FRIENDS), ylim=(0, None))
    plot(rows[0][0], ((k, k / 2) for k in FRIENDS), "#888888", "", "--", "ideal")
    plot(rows[0][1], zip(FRIENDS, PREVIOUS, strict=True), "#888888", "", ":", "previous protocol")
    even = ((k, (((k + 1) ** 2 - 1) / 12) ** 0.5) for k in FRIENDS)
    plot(rows[0][1], even, "#888888", "", "--", "all places alike")
    for axes in rows[0]:
        legend(axes)
    folder.save(figure, "figure-4-1")


def selfish(folder: FigureFolder, results: Results) -> None:
    """Figure 4.2."""
    figure, rows = folder.subplots()
    axes = rows[0][0]
    for reading, (colour, marker) in WAYS.items():
        found = results.over("selfish", SELFISH, reading, "exposed", "honest", "60")
        plot(axes, ((100 * at, value) for at, value in found.items()), colour, marker, "-", reading)
    axes.set(xlabel="selfish users (%)", ylabel="exposed honest users (%)", ylim=(0, None))
    legend(axes)
    folder.save(figure, "figure-4-2")


def isolated(folder: FigureFolder, results: Results) -> None:
    """Figure 4.3."""
    figure, rows = folder.subplots()
    axes = rows[0][0]
    for reading, (colour, marker) in WAYS.items():
        for words, line, part, at in (
            ("histories", "-", "selfish", 0.1),
            ("synthetic", "--", "penalty", 0.03),
        ):
            found = results.friends(part, at, reading, "own", "selfish", "*")
            plot(axes, percents(found), colour, marker, line, f"{words}, {reading}")
    axes.set(xlabel="friends", ylabel="own queries submitted (%)", xticks=list(FRIENDS), ylim=(0, 103))
    legend(axes)
    folder.save(figure, "figure-4-3")


def engines(folder: FigureFolder, results: Results) -> None:
    """Draw how many authors the engine names, by what it knows."""
    figure, rows = folder.subplots(2, 8.4, 3.9)
    for axes, reading in zip(rows[0], LOOKS, strict=True):
        for words, (path, colour, marker) in ENGINES.items():
            for interval, line in ((NOTHING, "--"), (BEST, "-")):
                found = results.over(f"linked {spelled(interval)}", LINKED, reading, *path)
                label = f"{words}, θ = {spelled(interval)} %"
                plot(axes, percents(found), colour, marker, line, label)
        log_axis(axes, "linked queries of an author", LINKED)
        axes.set(title=reading, ylim=(0, 103))
    rows[0][0].set_ylabel("authors named (%)")
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    folder.save(figure, "engine")


def colluding(folder: FigureFolder, results: Results) -> None:
    """Draw what colluding members see, and what they know of it."""
    figure, rows = folder.subplots()
    axes = rows[0][0]
    for reading, (colour, marker) in LOOKS.items():
        for words, line, path in (
            ("seen", ":", ("seen",)),
            ("author named, of all", "-", ("of_all", "success")),
            ("author named, of those seen", "--", ("success", "success")),
        ):
            found = results.over("colluding", COLLUDING, reading, "predecessor", *path)
            plot(
                axes,
                ((100 * at, 100 * v) for at, v in found.items()),
                colour,
                marker,
                line,
                f"{words}, {reading}",
            )
    axes.set(xscale="log", xlabel="colluding members (%)", ylabel="others' queries (%)", ylim=(0, None))
    axes.set_xticks([100 * at for at in COLLUDING], labels=[f"{100 * at:g}" for at in COLLUDING])
    axes.xaxis.minorticks_off()
    legend(axes, 6.5)
    folder.save(figure, "colluding")


def hops(folder: FigureFolder, results: Results) -> None:
    """Draw hops over the exponent, beside the thesis's."""
    figure, rows = folder.subplots()
    axes = rows[0][0]
    for reading, (colour, marker) in LOOKS.items():
        found = results.over("exponent", EXPONENTS, reading, "hops")
        plot(axes, found.items(), colour, marker, "-", reading)
    axes.axhline(HOPS, color="#000000", ls=":", lw=1.2, label=f"thesis: {HOPS}")
    axes.set(xlabel="exponent", ylabel="hops", xticks=list(EXPONENTS), ylim=(0, None))
    legend(axes)
    folder.save(figure, "hops")

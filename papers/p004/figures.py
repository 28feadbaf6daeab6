"""Figures of paper 004, and the comparison of our own way to cover."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from papers.common.figures import FigureFolder, legend, plot
from papers.p004.results import PAPERS, Results

#: Colours for colour-blind readers; lines and markers differ too.
LOOKS = {
    "tmn": ("#0072B2", "-", "o"),
    "usr": ("#D55E00", "--", "^"),
    "hybrid": ("#009E73", ":", "s"),
    "shadow": ("#000000", "-.", "D"),
}
CAPTIONS = {
    "figure-2": "Structure privacy: share of users with at least that error, absolute and relative",
    "figure-3": "Semantic privacy: share of users with at least that distance, worst case and mean",
    "figure-4": "Relative privacy over the number of people that one function learned from",
    "ours": "Structure privacy and worst-case semantic privacy, four ways to cover, with 95 % intervals",
}
_STRUCTURE = (
    "false negatives",
    "false positives",
    "relative false negatives",
    "relative false positives",
)


def draw(results: Results, path: Path) -> None:
    """Draw every figure."""
    folder = FigureFolder(path)
    shares(folder, results, "figure-2", _STRUCTURE)
    shares(folder, results, "figure-3", ("worst", "mean"))
    sizes(folder, results)
    compared(folder, results)


def shares(folder: FigureFolder, results: Results, name: str, numbers: tuple[str, ...]) -> None:
    """Draw which share of the users has at least so much of a number, a panel for each number."""
    figure, rows = folder.subplots(len(numbers), 2.7 * len(numbers), 3.0)
    for axes, number in zip(rows[0], numbers, strict=True):
        for method, (colour, line, _) in LOOKS.items():
            values = results.values(method, number)
            share = 1 - np.arange(values.size) / max(values.size, 1)
            if values.size:
                axes.step(values, share, color=colour, ls=line, lw=1.4, label=method, where="pre")
        axes.set(xlabel=number, xlim=(0, None), ylim=(0, 1.03))
    rows[0][0].set_ylabel("share of users")
    legend(rows[0][0])
    folder.save(figure, name)


def sizes(folder: FigureFolder, results: Results) -> None:
    """Figure 4: percentiles 5, 50 and 95 of both relative errors."""
    figure, rows = folder.subplots(2, 8.4, 3.4)
    for place, (axes, words) in enumerate(zip(rows[0], ("false negatives", "false positives"), strict=True)):
        for method in PAPERS:
            colour, _, marker = LOOKS[method]
            sized = results.sized(method)
            for part, line in ((0.05, ":"), (0.5, "-"), (0.95, "--")):
                points = [
                    (size, float(np.quantile(values[:, place], part))) for size, values in sized.items()
                ]
                plot(axes, points, colour, marker, line, f"{method}, percentile {100 * part:.0f}")
        axes.set(xlabel="people learned from", ylabel=f"relative {words}", ylim=(0, None))
    legend(rows[0][0])
    folder.save(figure, "figure-4")


def compared(folder: FigureFolder, results: Results) -> None:
    """Draw means with their intervals, a panel for structure and one for topics."""
    figure, rows = folder.subplots(2, 7.6, 3.0)
    panels = {"error": "error over pairs (0.5 is chance)", "worst": "worst-case distance of topics"}
    for axes, (number, words) in zip(rows[0], panels.items(), strict=True):
        bars(axes, results, number)
        axes.set(xlabel=words, xlim=(0, None))
    folder.save(figure, "ours")


def bars(axes: Any, results: Results, number: str) -> None:
    """Draw one mean with its interval for each way to cover, from above in their order."""
    for place, (method, (colour, _, marker)) in enumerate(LOOKS.items()):
        found = results.average(method, number)
        if found is not None:
            reach = found.high - found.value
            axes.errorbar(found.value, -place, xerr=reach, color=colour, marker=marker, capsize=4)
    axes.set_yticks([-place for place in range(len(LOOKS))], labels=list(LOOKS))

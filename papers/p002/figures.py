"""Figures of paper 002."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from papers.common.figures import FigureFolder, log_axis, plot
from papers.p002.results import NAMES, SETTINGS, Results

#: Colours for colour-blind readers; markers and lines differ too.
LOOKS = {
    "sqc2": ("#009E73", "o", "-"),
    "sqc1": ("#0072B2", "s", "-"),
    "none": ("#D55E00", "^", "-"),
    "hbdp": ("#000000", "x", "--"),
}
READINGS = {"history": "ε for a history (ε/m for a query)", "query": "ε for each query (mε for a history)"}
NUMBERS = {"2": ("A", "D(q)=P 19"), "3": ("B", "D(q)=P 19"), "4": ("C", "D(q)=P 4")}


def draw(results: Results, path: Path) -> None:
    """Draw every figure."""
    folder = FigureFolder(path)
    for number, (setting, same) in NUMBERS.items():
        numbered(folder, results, number, setting, same)
    beyond(folder, results)


def numbered(folder: FigureFolder, results: Results, number: str, setting: str, same: str) -> None:
    """Figures 2 to 4: utility loss over ε, with both readings of ε side by side."""
    figure, rows = folder.subplots(2, 8.4, 3.6)
    for axes, (per, title) in zip(rows[0], READINGS.items(), strict=True):
        curves(axes, results, setting, per)
        plot(axes, results.points(same, "hbdp", per), "#888888", "x", ":", "HBDP, D(q)=P")
        spent = results.points(setting, "hbdp equal", "history") if per == "query" else []
        plot(axes, spent, "#E69F00", "P", "--", "HBDP that spends mε")
        if number == "4":
            axes.set(yscale="log", ylim=(0.05, 1))
            axes.set_yticks([0.05, 0.1, 0.2, 0.5, 1], labels=["0.05", "0.1", "0.2", "0.5", "1"])
            axes.text(0.1, 0.054, "SQC1, SQC2, NSQC with D(q)=P: exactly 0, below this scale", fontsize=7)
            axes.minorticks_off()
        else:
            plot(axes, results.points(same, "sqc1", per), "#CC79A7", "D", "-", "SQC1, SQC2, NSQC, D(q)=P")
            axes.set(ylim=(-0.02, 0.75))
        frame(axes, title)
    rows[0][0].set_ylabel("utility loss (mean JSD)")
    figure.legend(*rows[0][1].get_legend_handles_labels(), loc="outside lower center", ncols=7, fontsize=7)
    folder.save(figure, f"figure-{number}")


def curves(axes: Any, results: Results, setting: str, per: str, most: float = 10) -> None:
    """Draw the four methods of a setting."""
    for method, (colour, marker, line) in LOOKS.items():
        plot(axes, results.points(setting, method, per, most), colour, marker, line, NAMES[method])


def frame(axes: Any, title: str, ticks: tuple[float, ...] = (0.1, 0.2, 0.5, 1, 2, 5, 10)) -> None:
    """Name the axis of ε."""
    log_axis(axes, "ε", ticks)
    axes.set_title(title, fontsize=9)


def beyond(folder: FigureFolder, results: Results) -> None:
    """Draw the settings over the ε of a single query, far past the paper's."""
    figure, rows = folder.subplots(3, 8.4, 3.2)
    for axes, setting in zip(rows[0], SETTINGS, strict=True):
        curves(axes, results, setting, "query", 40)
        axes.axvspan(10, 40, color="#000000", alpha=0.06, lw=0)
        axes.set(ylim=(-0.02, 1))
        frame(axes, f"setting {setting}", (0.1, 1, 10, 40))
    rows[0][0].set_ylabel("utility loss (mean JSD)")
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    folder.save(figure, "figure-beyond")

"""Draws the figures of paper 002 from the lines that `benchmarks.paper_002` measured."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper_000_figures import Pen
from benchmarks.paper_000_page import LARGEST_FIGURE

#: Colours that people who see few colours can tell apart; markers and lines differ too.
LOOKS = {
    "sqc2": ("SQC2", "#009E73", "o", "-"),
    "sqc1": ("SQC1", "#0072B2", "s", "-"),
    "none": ("NSQC", "#D55E00", "^", "-"),
    "hbdp": ("HBDP", "#000000", "x", "--"),
}
SPELLED = {method: look[0] for method, look in LOOKS.items()}
READINGS = {"history": "ε for a history (ε/m for a query)", "query": "ε for each query (mε for a history)"}
NUMBERS = {"2": ("A", "D(q)=P 19"), "3": ("B", "D(q)=P 19"), "4": ("C", "D(q)=P 4")}


@dataclass(frozen=True)
class Results:
    """One run: what the log was, the lines by name, and the exact probabilities."""

    about: dict[str, Any]
    machine: dict[str, Any]
    lines: dict[str, dict[str, Any]]
    exact: list[dict[str, Any]]
    seconds: float

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read the lines of a run."""
        first, *rest = (json.loads(text) for text in path.read_text().splitlines())
        return cls(
            first["about"],
            first["machine"],
            {one["name"]: one for one in rest if one.get("name")},
            [one for one in rest if one.get("part") == "exact"],
            sum(one["seconds"] for one in rest if one.get("part") == "time"),
        )

    def line(self, setting: str, method: str, per: str, epsilon: float, log: str = "usual") -> Any:
        """Give a line, or None where it was not measured. A histogram has one reading of ε."""
        way = "history" if method.startswith("hbdp") or method == "blank" else per
        other = "" if log == "usual" else f" log={log}"
        return self.lines.get(f"{setting} {method} per={way} epsilon={epsilon:g}{other}")

    def value(
        self, setting: str, method: str, per: str, epsilon: float, log: str = "usual", column: str = "loss"
    ) -> float | None:
        """Give one number of a line."""
        found = self.line(setting, method, per, epsilon, log)
        return None if found is None else float(found.get(column, found["loss"]))

    def epsilons(self, setting: str, method: str, per: str, most: float = 10) -> list[float]:
        """List the ε at which something was measured, by default within the paper's range."""
        return sorted(
            one["epsilon"]
            for one in self.lines.values()
            if (one["setting"], one["method"], one["per"], one["log"]) == (setting, method, per, "usual")
            and one["epsilon"] <= most
        )

    def points(self, setting: str, method: str, per: str, most: float = 10) -> list[tuple[float, float]]:
        """Give the utility loss over ε."""
        way = "history" if method == "hbdp" else per
        return [
            (epsilon, float(self.line(setting, method, way, epsilon)["loss"]))
            for epsilon in self.epsilons(setting, method, way, most)
        ]


def draw(results: Results, folder: Path) -> None:
    """Draw all figures, and see that none is too large."""
    pen = Pen(folder)
    for number, (setting, same) in NUMBERS.items():
        numbered(pen, results, number, setting, same)
    beyond(pen, results)
    for path in sorted(folder.glob("*.svg")):
        if path.stat().st_size > LARGEST_FIGURE:
            raise ValueError(f"{path.name} is larger than {LARGEST_FIGURE:,} bytes")


def numbered(pen: Pen, results: Results, number: str, setting: str, same: str) -> None:
    """Figures 2 to 4: utility loss over ε, with both readings of ε side by side."""
    figure, rows = pen.sheet(2, 8.4, 3.6)
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
    pen.keep(figure, f"figure-{number}")


def curves(axes: Any, results: Results, setting: str, per: str, most: float = 10) -> None:
    """Draw the four methods of a setting."""
    for method, (label, colour, marker, line) in LOOKS.items():
        plot(axes, results.points(setting, method, per, most), colour, marker, line, label)


def plot(
    axes: Any, points: Iterable[tuple[float, float]], colour: str, marker: str, line: str, label: str
) -> None:
    """Draw one line, if there is something to draw."""
    found = list(points)
    if found:
        axes.plot(*zip(*found, strict=True), ls=line, marker=marker, ms=4, lw=1.3, color=colour, label=label)


def frame(axes: Any, title: str, ticks: tuple[float, ...] = (0.1, 0.2, 0.5, 1, 2, 5, 10)) -> None:
    """Name the axis of ε."""
    axes.set(xscale="log", xlabel="ε")
    axes.set_title(title, fontsize=9)
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes.xaxis.minorticks_off()


def beyond(pen: Pen, results: Results) -> None:
    """Draw the settings over the ε of a single query, far past the paper's."""
    figure, rows = pen.sheet(3, 8.4, 3.2)
    for axes, setting in zip(rows[0], ("A", "B", "C"), strict=True):
        curves(axes, results, setting, "query", 40)
        axes.axvspan(10, 40, color="#000000", alpha=0.06, lw=0)
        axes.set(ylim=(-0.02, 1))
        frame(axes, f"setting {setting}", (0.1, 1, 10, 40))
    rows[0][0].set_ylabel("utility loss (mean JSD)")
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    pen.keep(figure, "figure-beyond")

"""Matplotlib with one look for all figures; a file changes only when its numbers do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: Bytes of the largest figure that a page may have.
MOST_BYTES = 150_000
Point = tuple[Any, float]


class FigureFolder:
    """Creates figures and saves them as SVG in one folder."""

    def __init__(self, folder: Path) -> None:
        import matplotlib as mpl

        mpl.use("Agg")
        mpl.rcParams.update(
            {
                "svg.fonttype": "none",
                "svg.hashsalt": "querycloak",
                "font.size": 9,
                "axes.grid": True,
                "grid.alpha": 0.3,
                "axes.spines.top": False,
                "axes.spines.right": False,
            }
        )
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def subplots(self, panels: int = 1, width: float = 6.0, height: float = 3.6) -> Any:
        """Return a figure and its axes, side by side."""
        from matplotlib import pyplot as plt

        return plt.subplots(1, panels, figsize=(width, height), squeeze=False, layout="constrained")

    def colours(self, count: int) -> list[Any]:
        """Return colours from dark to light."""
        from matplotlib import colormaps

        return [colormaps["viridis"](place / max(count - 0.5, 1)) for place in range(count)]

    def save(self, figure: Any, name: str) -> None:
        """Write a figure; raise SystemExit if it is too large for a page."""
        from matplotlib import pyplot as plt

        path = self._folder / f"{name}.svg"
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)
        if path.stat().st_size > MOST_BYTES:
            raise SystemExit(f"{path.name}: figure has more than {MOST_BYTES:,} bytes")


def plot(axes: Any, points: Iterable[Point], colour: Any, marker: str, line: str, label: str) -> None:
    """Draw one line, if it has points."""
    found = list(points)
    if found:
        axes.plot(*zip(*found, strict=True), ls=line, marker=marker, ms=4, lw=1.3, color=colour, label=label)


def legend(axes: Any, size: float = 7) -> None:
    """Explain the lines, if there are any."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=size)


def log_axis(axes: Any, name: str, ticks: Iterable[float]) -> None:
    """Give the horizontal axis a logarithmic scale with these ticks."""
    found = list(ticks)
    axes.set(xscale="log", xlabel=name)
    axes.set_xticks(found, labels=[f"{tick:g}" for tick in found])
    axes.xaxis.minorticks_off()

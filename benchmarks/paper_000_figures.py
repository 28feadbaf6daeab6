"""Draws the figures of paper 000 from the lines that `benchmarks.paper_000` measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

THREE = ("link-random", "link-frequent", "link-profile")
RED, SEATING = "crimson", {"arrival": "-", "similar": "--"}  # how `cohort` is drawn
Key = tuple[str, int, int, str | None]
SHOWN_K = 10  # the k of the figures that have room for one


@dataclass(frozen=True)
class Results:
    """One run: what the log was, the measures of each setting, and what each attack achieved there.

    `base` and `attacks` go by (method, k, level, assign); `wrong` is the attacker with false beliefs.
    """

    about: dict[str, Any]
    measured: dict[Key, dict[str, Any]]
    attacks: dict[Key, dict[str, Any]]
    wrong: dict[str, Any] | None

    @classmethod
    def of(cls, about: dict[str, Any], lines: list[dict[str, Any]]) -> Results:
        """Put the lines of a run together by setting."""
        found = cls(about, {}, {}, next((one for one in lines if one["part"] == "wrong"), None))
        for one in lines:
            key = one["method"], one["k"], one["level"], one["assign"]
            found.attacks.setdefault(key, {}).update(one.get("attacks", {}))
            if one["part"] == "base":
                found.measured[key] = one
        return found

    def base(self, method: str, assign: str | None = None) -> list[dict[str, Any]]:
        """Give the measures of a method, by level and k."""
        keys = sorted(
            (key for key in self.measured if (key[0], key[3]) == (method, assign)), key=lambda key: key[1:3]
        )
        return [self.measured[key] for key in keys]

    def one(self, method: str, k: int, level: int = 1, assign: str | None = None) -> Any:
        """Give the measures of one setting, or None where there are none."""
        return self.measured.get((method, k, level, assign))

    def success(
        self, name: str, method: str, k: int, level: int = 1, assign: str | None = None
    ) -> float | None:
        """Give an attack's share of right guesses, or None where it was not tried."""
        found = self.attacks.get((method, k, level, assign), {}).get(name)
        return found["success"] if found else None

    def often(self, method: str, k: int, level: int = 1, assign: str | None = None) -> Any:
        """Give what `link-repeat` achieves on strings that one person asked five times or more."""
        found = self.attacks.get((method, k, level, assign), {}).get("link-repeat") or {}
        return found.get("by_repeats", {}).get("5+")

    def linked(self, name: str, method: str, level: int = 1, assign: str | None = None) -> dict[int, float]:
        """Give an attack's success at every k at which it was tried."""
        found = {k: self.success(name, method, k, level, assign) for k in self.ks}
        return {k: value for k, value in found.items() if value is not None}

    @property
    def ks(self) -> list[int]:
        """List the k that were tried."""
        return sorted({one["k"] for one in self.base("swap")})

    @property
    def levels(self) -> list[int]:
        """List the levels that were tried."""
        return sorted({one["level"] for one in self.base("swap")})


class Pen:
    """Matplotlib with one look for all figures, and files that do not change when the numbers do not."""

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

    def sheet(self, panels: int = 1, width: float = 6.0, height: float = 3.6) -> Any:
        """Give a figure and its axes."""
        from matplotlib import pyplot as plt

        return plt.subplots(1, panels, figsize=(width, height), squeeze=False, layout="constrained")

    def colours(self, count: int) -> Iterable[Any]:
        """Give colours from dark to light, for levels."""
        from matplotlib import colormaps

        return [colormaps["viridis"](place / max(count - 0.5, 1)) for place in range(count)]

    def keep(self, figure: Any, name: str) -> None:
        """Write a figure."""
        from matplotlib import pyplot as plt

        figure.savefig(self._folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)


Points = dict[int, float]


def column(results: Results, name: str, level: int) -> Points:
    """Give a measure of `swap` at a level, by k."""
    return {one["k"]: float(one[name]) for one in results.base("swap") if one["level"] == level}


def level_lines(pen: Pen, axes: Any, results: Results, points: Callable[[int], Points]) -> None:
    """Draw one line for each level over k."""
    for level, colour in zip(results.levels, pen.colours(len(results.levels)), strict=True):
        found = points(level)
        if found:
            axes.plot(*zip(*found.items(), strict=True), ".-", color=colour, label=f"swap, level {level}")
    axes.set_xlabel("k")


def cohort_lines(axes: Any, points: Callable[[str], Points]) -> None:
    """Draw `cohort` over k, in both ways of seating."""
    for assign, style in SEATING.items():
        found = points(assign)
        if found:
            axes.plot(
                *zip(*found.items(), strict=True), "s", ls=style, ms=3, color=RED, label=f"cohort, {assign}"
            )


def linkage(pen: Pen, results: Results) -> None:
    """Figure 6: record linkage of the paper's three attacks."""
    figure, rows = pen.sheet(3, 10, 3.4)
    for axes, name in zip(rows[0], THREE, strict=True):
        level_lines(pen, axes, results, partial(_percent_linked, results, name, "swap"))
        cohort_lines(axes, partial(_percent_linked, results, name, "cohort", 1))
        axes.plot(results.ks, [100 / k for k in results.ks], "k:", label="1/k")
        axes.set(title=name, xscale="log", yscale="log", ylabel="records linked (%)")
    rows[0][-1].legend(fontsize=6)
    pen.keep(figure, "figure-06")


def _percent_linked(
    results: Results, name: str, method: str, level: int, assign: str | None = None
) -> Points:
    return {k: 100 * share for k, share in results.linked(name, method, level, assign).items()}


def cumulative(pen: Pen, results: Results, shares: dict[str, list[float]]) -> None:
    """Figure 7: the cumulative shares that the Kolmogorov-Smirnov test compares."""
    figure, rows = pen.sheet()
    for name, values in shares.items():
        ordered = sorted(values)
        steps = [(place + 1) / len(ordered) for place in range(len(ordered))]
        rows[0][0].step(ordered, steps, where="post", label=name, ls=":" if name == "1/k" else "-")
    rows[0][0].set(xscale="log", xlabel="share of records linked", ylabel="cumulative share of the k tried")
    rows[0][0].legend(fontsize=7)
    pen.keep(figure, "figure-07")


def final_size(pen: Pen, results: Results) -> None:
    """Figure 8: records that a category still holds at the end."""
    figure, rows = pen.sheet()
    level_lines(pen, rows[0][0], results, partial(column, results, "final_held"))
    rows[0][0].plot(results.ks, results.ks, "k:", label="k")
    rows[0][0].set(xscale="log", yscale="log", ylabel="mean final |Q|")
    rows[0][0].legend(fontsize=7)
    pen.keep(figure, "figure-08")


def over_time(pen: Pen, results: Results, name: str, column: str, label: str, log: bool) -> None:
    """Figures 9 and 13: what changes while the log flows in."""
    figure, rows = pen.sheet()
    axes, tenths = rows[0][0], range(10, 101, 10)
    scale = 100 if column == "release_rate_by_tenths" else 1
    for level, colour in zip(results.levels, pen.colours(len(results.levels)), strict=True):
        line = results.one("swap", SHOWN_K, level)
        axes.plot(tenths, [scale * v for v in line[column]], ".-", color=colour, label=f"swap, level {level}")
    for assign, style in SEATING.items():
        line = results.one("cohort", SHOWN_K, assign=assign)
        if line:
            axes.plot(tenths, [scale * v for v in line[column]], "s", ls=style, ms=3, color=RED,
                      label=f"cohort, {assign}")  # fmt: skip
    axes.set(
        xlabel="log read (%)", ylabel=label, title=f"k = {SHOWN_K}", yscale="symlog" if log else "linear"
    )
    axes.legend(fontsize=7)
    pen.keep(figure, name)


def utility(pen: Pen, results: Results) -> None:
    """Figure 10: how far profiles moved, over the levels."""
    figure, rows = pen.sheet(2, 8, 3.4)
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
        for assign, style in SEATING.items():
            if line := results.one("cohort", SHOWN_K, assign=assign):
                axes.axhline(scale * line["profile"][name], color=RED, ls=style,
                             label=f"cohort, k {SHOWN_K}, {assign}")  # fmt: skip
        axes.set(xlabel="level", ylabel=label, ylim=(0, None))
    largest = results.base("swap")[0]["profile"]["largest_distance"]
    rows[0][0].set_title(f"the largest possible is {largest:.0f}", fontsize=8)
    rows[0][1].legend(fontsize=7)
    pen.keep(figure, "figure-10")


def speed(pen: Pen, results: Results) -> None:
    """Figure 11: microseconds per record of the methods."""
    figure, rows = pen.sheet()
    name = "microseconds_per_record"
    level_lines(pen, rows[0][0], results, partial(column, results, name))
    cohort_lines(rows[0][0], lambda assign: {o["k"]: o[name] for o in results.base("cohort", assign)})
    rows[0][0].set(ylabel="µs per record", ylim=(0, None))
    rows[0][0].legend(fontsize=6)
    pen.keep(figure, "figure-11")


def attack_speed(pen: Pen, results: Results) -> None:
    """Figure 12: microseconds per record of the paper's three attacks."""
    figure, rows = pen.sheet(3, 10, 3.2)
    for axes, name in zip(rows[0], THREE, strict=True):
        level_lines(pen, axes, results, partial(_attack_time, results, name))
        axes.set(title=name, ylabel="µs per record", ylim=(0, None))
    rows[0][-1].legend(fontsize=6)
    pen.keep(figure, "figure-12")


def _attack_time(results: Results, name: str, level: int) -> Points:
    found = ((k, results.attacks.get(("swap", k, level, None), {}).get(name)) for k in results.ks)
    return {k: 1e6 * one["seconds"] / one["n"] for k, one in found if one and one["n"]}


def memory(pen: Pen, results: Results) -> None:
    """Figure 14: the arrays that a method holds."""
    figure, rows = pen.sheet()
    axes = rows[0][0]
    for k, colour in zip(results.ks, pen.colours(len(results.ks)), strict=True):
        lines = [one for level in results.levels if (one := results.one("swap", k, level))]
        axes.plot([o["level"] for o in lines], [o["method_bytes"] / 1e6 for o in lines], ".-", color=colour,
                  label=f"swap, k {k}")  # fmt: skip
    axes.set(xlabel="level", ylabel="arrays of the method (MB)", ylim=(0, None))
    axes.legend(fontsize=6)
    pen.keep(figure, "figure-14")


def depth(pen: Pen, results: Results, paper: list[int]) -> None:
    """Table 3: how many categories each level adds."""
    figure, rows = pen.sheet()
    added = results.about["added_categories"]
    levels = [level for level in range(1, 14) if added[str(level)]]
    rows[0][0].plot(range(1, 14), paper, "k.--", label="paper (ODP)")
    rows[0][0].plot(
        levels, [added[str(level)] for level in levels], "o-", ms=3, label="made-up log (WordNet)"
    )
    rows[0][0].set(xlabel="level", ylabel="categories added", yscale="log")
    rows[0][0].legend(fontsize=7)
    pen.keep(figure, "table-3")


def stronger(pen: Pen, results: Results) -> None:
    """What the paper did not try: windows and repeated strings, on `swap` and on `cohort`."""
    figure, rows = pen.sheet(2, 8, 3.4)
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
    pen.keep(figure, "figure-stronger")

"""The chart of a comparison: what is kept against what is linked; Plotly on the page, matplotlib as SVG."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from querycloak.compare.result import ATTACKERS, CandidateResult, Comparison
from querycloak.errors import MissingExtra
from querycloak.intervals import Estimate
from querycloak.measures.base import ALL_USES
from querycloak.report.comparison.answers import UNITS
from querycloak.report.comparison.view import settings_of
from querycloak.report.numbers import capitalised

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What the chart shows before a reader chooses.
USE, ATTACKER = "terms", "any"
#: Colours that are told apart with any kind of colour vision, on white and on black.
_LIGHT: Final = ("#0072b2", "#d55e00", "#00876c", "#b5548a", "#a67c00", "#332288", "#882255", "#5f6b76")
_DARK: Final = ("#56b4e9", "#ff8a4c", "#35c9a3", "#e79bc6", "#e6b800", "#a79bf0", "#e57a9e", "#aeb8c0")
#: Marker by Plotly's name, matplotlib's code, and as a character for the list beside the chart.
_SHAPES: Final = (
    ("circle", "o", "●"), ("square", "s", "■"), ("diamond", "D", "◆"), ("triangle-up", "^", "▲"),
    ("triangle-down", "v", "▼"), ("cross", "P", "✚"), ("x", "X", "✖"), ("star", "*", "★"),
)  # fmt: skip
_INK, _SOFT, _GRID = "#1c2630", "#4f5964", "#e4e0d5"
_ROOT_TICKS: Final = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1)
_EVEN_TICKS: Final = (0, 0.2, 0.4, 0.6, 0.8, 1)
_TITLES: Final = {
    "release": "Linked by who sees only the release",
    "knowing": "Linked by who knows more",
    "any": "Linked by the best of all attacks",
}


def look(place: int) -> dict[str, str]:
    """Return colours and marker of a series; no two of 64 series have both in common."""
    kinds = len(_SHAPES)
    marker = zip(("shape", "code", "sign"), _SHAPES[(place + place // kinds) % kinds], strict=True)
    return {"colour": _LIGHT[place % kinds], "dark": _DARK[place % kinds], **dict(marker)}


def chart_data(comparison: Comparison) -> dict[str, Any]:
    """Return everything that a chart shows, as plain values for the page.

    In a point, `x` holds for each use what is kept with its interval; `y` holds for each attacker the linked
    share with its interval, the attack, and the bound if one is stated for it.
    """
    names = list(dict.fromkeys(one.series for one in comparison.succeeded))
    points = [_point(one, names.index(one.series)) for one in sorted(comparison.succeeded, key=_varied)]
    for place in range(len(names)):
        own = [point for point in points if point["line"] == place]
        for point in own[1:-1]:
            point["label"] = ""  # the ends of a line are enough, and labels would cover each other
    return {
        "lines": [{"name": name, **look(place)} for place, name in enumerate(names)],
        "axes": [{"name": use.name, "title": capitalised(use.title)} for use in ALL_USES.values()],
        "attackers": attackers(comparison),
        "points": points,
        "ticks": {"root": _ROOT_TICKS, "even": _EVEN_TICKS},
        "trace": _TRACE,
        "layout": _LAYOUT,
    }


#: The parts of a Plotly trace and layout that do not depend on the choices of a reader.
_FONT: Final = "system-ui, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"
_TRACE: Final = {
    "type": "scatter",
    "mode": "lines+markers+text",
    "textposition": "top right",
    "textfont": {"size": 12},
    "line": {"width": 2},
    "hovertemplate": "%{customdata}<extra></extra>",
    "cliponaxis": False,
}
_LAYOUT: Final = {
    "font": {"family": _FONT, "size": 13},
    "margin": {"l": 60, "r": 24, "t": 56, "b": 60},
    "dragmode": False,
    "hovermode": "closest",
    "hoverlabel": {"align": "left", "font": {"size": 13}},
    "title": {"x": 0, "xanchor": "left", "xref": "container", "y": 1, "yanchor": "top", "yref": "container",
              "pad": {"l": 14, "t": 14}, "font": {"size": 15}},
    "xaxis": {"tickformat": ".0%", "zeroline": False, "fixedrange": True, "title": {"standoff": 12}},
    "yaxis": {"zeroline": False, "fixedrange": True},
}  # fmt: skip


def _varied(one: CandidateResult) -> float:
    """Return the value of the varied setting, by which the points of a series are joined."""
    value = one.varied and one.varied.value
    return float(value) if isinstance(value, int | float) else 0.0


def attackers(comparison: Comparison) -> list[dict[str, str]]:
    """Return the choices of the upright axis: kinds of attackers, then each attack alone."""
    units = {
        label: UNITS.get(found.unit, found.unit)
        for one in comparison.succeeded
        for label, found in one.findings.items()
        if found.success is not None
    }
    labels = [one["label"] for one in comparison.attacks if one["label"] in units]
    return [{"name": name, "title": _TITLES[name]} for name in ATTACKERS] + [
        {"name": f"attack:{label}", "title": f"{label} is right for this share of {units[label]}"}
        for label in labels
    ]


def _point(one: CandidateResult, series: int) -> dict[str, Any]:
    linked = {name: (found.attack, found.share) for name in ATTACKERS if (found := one.linked(name))}
    single = {f"attack:{label}": (label, found.share) for label, found in one.findings.items() if found.share}
    return {
        "name": one.name,
        "line": series,
        "label": label_of(one),
        "settings": settings_of(one),
        "x": {name: one.kept(name) for name in ALL_USES},
        "y": {name: _linked(one, *found) for name, found in (linked | single).items()},
    }


def _linked(one: CandidateResult, attack: str, share: Estimate) -> dict[str, Any]:
    bound = one.findings[attack].bound
    return {"attack": attack, "share": share.value, "low": share.low, "high": share.high, "bound": bound}


def label_of(one: CandidateResult) -> str:
    """Return the text beside a marker: the varied setting, or the name of a candidate without one."""
    if one.varied is None:
        return one.name
    value = one.varied.value
    short = {"epsilon": "ε"}.get(name := one.varied.setting.rpartition(".")[2], name)
    return f"{short}={value:g}" if isinstance(value, int | float) else f"{short}={value}"


# The static picture


def svg(comparison: Comparison, use: str = USE, attacker: str = ATTACKER) -> str:
    """Return the chart as SVG text, for print, a README, and a page without scripts.

    Shares are drawn on a square-root scale, so that small ones have room.
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("report", "the static chart of a comparison") from None
    data = chart_data(comparison)
    points = [one for one in data["points"] if one["x"][use] and attacker in one["y"]]
    titles = {one["name"]: one["title"] for one in [*data["axes"], *data["attackers"]]}
    settings: Any = {
        "svg.fonttype": "none", "svg.hashsalt": "querycloak", "text.parse_math": False, "font.size": 10,
        "font.sans-serif": ["Noto Sans", "Segoe UI", "Helvetica", "Arial", "DejaVu Sans"],
        "text.color": _INK, "axes.labelcolor": _INK, "xtick.color": _SOFT, "ytick.color": _SOFT,
    }  # fmt: skip
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(10, 6.4), layout="constrained")
        canvas: Any = FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        _scales(axes, titles[use], titles[attacker])
        for place, line in enumerate(data["lines"]):
            _series(axes, line, [one for one in points if one["line"] == place], use, attacker)
        axes.set_title(
            f"What is kept, and what can still be linked\n{len(points)} settings on "
            f"{comparison.log.people:,} people; bars are 95 % intervals; further down and right is better",
            loc="left", fontsize=11,
        )  # fmt: skip
        if points:
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
        else:
            axes.text(0.05, 0.9, "No candidate has both numbers.", transform=axes.transAxes)
        canvas.draw()
        _hide_covered(axes, canvas.get_renderer())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = out.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    title = f"{titles[use]} against: {titles[attacker]}; tables have the numbers."
    return text.replace("<svg ", f'<svg class="still" role="img" aria-label="{escape(title)}" ', 1)


def _scales(axes: Axes, across: str, up: str) -> None:
    import numpy as np

    axes.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
    axes.set_yticks(_ROOT_TICKS, [f"{100 * share:g} %" for share in _ROOT_TICKS])
    axes.set_ylim(0, 1.1)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.set_xlabel(f"{across} →", loc="right", fontweight="bold")
    axes.set_ylabel(f"{up} (square-root scale) →", loc="top")
    axes.grid(color=_GRID)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.minorticks_off()


def _series(
    axes: Axes, line: dict[str, str], points: Sequence[dict[str, Any]], use: str, attacker: str
) -> None:
    """Draw the points of a series with their intervals, labels and bounds."""
    if not points:
        return
    kept, linked = [one["x"][use] for one in points], [one["y"][attacker] for one in points]
    x, y = [share.value for share in kept], [found["share"] for found in linked]
    across = [[share.value - share.low for share in kept], [share.high - share.value for share in kept]]
    up = [[one["share"] - one["low"] for one in linked], [one["high"] - one["share"] for one in linked]]
    axes.errorbar(x, y, xerr=across, yerr=up, color=line["colour"], elinewidth=1.2, linewidth=1.6, zorder=2)
    name = line["name"] if len(line["name"]) <= 34 else line["name"][:33] + "…"
    axes.plot(
        x, y, line["code"], color=line["colour"], markersize=7, markeredgecolor="white", markeredgewidth=0.6,
        label=name, zorder=3, gid=f"series-{points[0]['line']}",
    )  # fmt: skip
    style: Any = {"textcoords": "offset points", "ha": "left", "fontsize": 8, "color": line["colour"]}
    for one, at in zip(points, zip(x, y, strict=True), strict=True):
        axes.annotate(one["label"], at, xytext=(5, 4), **style)
    bounds = [(v, found["bound"]) for v, found in zip(x, linked, strict=True) if found["bound"] is not None]
    if bounds:
        axes.plot(
            *zip(*bounds, strict=True), "_--", color=line["colour"], markersize=13, linewidth=1.2, zorder=1
        )


def _hide_covered(axes: Axes, renderer: Any) -> None:
    """Hide labels that would cover an earlier one."""
    taken: list[Any] = []
    for text in axes.texts:
        box = text.get_window_extent(renderer)
        if any(box.overlaps(other) for other in taken) or not math.isfinite(box.x0):
            text.set_visible(False)
        else:
            taken.append(box)

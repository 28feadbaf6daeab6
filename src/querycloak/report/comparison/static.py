"""The frontier as a picture that needs no program: for paper, for a page without scripts, for a README."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from querycloak.report.comparison.figures import percent
from querycloak.report.comparison.frontier import ATTACKER, AXIS, frontier
from querycloak.report.comparison.result import Comparison
from querycloak.report.html import Html, join, tag

_WIDTH: Final = 1000
_LEFT, _TOP, _RIGHT, _BOTTOM = 78, 122, 740, 580
_INK, _SOFT, _GRID = "#1c2630", "#4f5964", "#e4e0d5"
_Y_TICKS: Final = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1)
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Dot:
    """A candidate on the paper."""

    x: float
    y: float
    low: float
    high: float
    left: float
    right: float
    bound: float | None
    line: int
    label: str
    title: str


def svg(comparison: Comparison, axis: str = AXIS, attacker: str = ATTACKER) -> str:
    """Draw what is kept on an axis against what an attacker links, one line for each method.

    Shares are drawn by their square roots, so that small ones have room; the axis says so.
    """
    all_of_it = frontier(comparison)
    points = [one for one in all_of_it["points"] if one["x"][axis] and attacker in one["y"]]
    start = _start([one["x"][axis][1] for one in points])
    dots = [_dot(one, axis, attacker, start) for one in points]
    shown = [
        (place, line)
        for place, line in enumerate(all_of_it["lines"])
        if any(dot.line == place for dot in dots)
    ]
    titles = {one["name"]: one["title"] for one in [*all_of_it["axes"], *all_of_it["attackers"]]}
    height = max(_BOTTOM + 70, _TOP + 24 * len(shown) + 60)
    log = comparison.data["log"]
    counted = f"{len(dots)} settings on {log['people']:,} people"
    under = f"{counted}; bars are 95 % intervals; further down and right is better"
    parts = [
        tag("rect", width=_WIDTH, height=height, fill="#ffffff"),
        _text(_LEFT - 50, 38, "What is kept, and what can still be linked", size=22, weight=600, fill=_INK),
        _text(_LEFT - 50, 62, under, size=14, fill=_SOFT),
        *_scales(titles[axis], titles[attacker], start),
        *(_path(line, [dot for dot in dots if dot.line == place]) for place, line in shown),
        *(_mark(all_of_it["lines"][dot.line], dot) for dot in dots),
        *_labels(dots, all_of_it["lines"]),
        *_legend(shown, any(dot.bound is not None for dot in dots)),
    ]
    if not dots:
        parts.append(_text(_LEFT + 20, _TOP + 40, "No candidate has both numbers.", size=15, fill=_INK))
    return str(
        tag(
            "svg",
            tag(
                "title",
                f"{titles[axis]} against: {titles[attacker]}, for {counted}; tables have the numbers.",
            ),
            join(parts),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {_WIDTH} {height}",
            role="img",
            class_="still",
            font_family="system-ui, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif",
        )
    )


def _start(shares: Sequence[float]) -> float:
    """Say where the scale of what is kept begins: at nothing, unless all keep more than half."""
    least = min(shares, default=0.0)
    return max(0.0, math.floor(10 * least) / 10 - 0.1) if least > 0.5 else 0.0


def _across(share: float, start: float) -> float:
    return _LEFT + ((share - start) / (1 - start) + 0.02) / 1.05 * (_RIGHT - _LEFT)


def _up(share: float) -> float:
    return _BOTTOM - (math.sqrt(max(0.0, share)) + 0.02) / 1.05 * (_BOTTOM - _TOP)


def _dot(one: dict[str, Any], axis: str, attacker: str, start: float) -> Dot:
    value, left, right = one["x"][axis]
    found = one["y"][attacker]
    bound = None if found["bound"] is None else _up(found["bound"])
    title = (
        f"{one['name']}: keeps {percent(value)}; {found['attack']} {percent(found['share'])} "
        f"({percent(found['low'])} to {percent(found['high'])})"
    )
    return Dot(
        x=_across(value, start),
        y=_up(found["share"]),
        low=_up(found["low"]),
        high=_up(found["high"]),
        left=_across(left, start),
        right=_across(right, start),
        bound=bound,
        line=one["line"],
        label=one["label"],
        title=title,
    )


def _scales(across: str, up: str, start: float) -> list[Html]:
    parts = []
    for share in _Y_TICKS:
        y = _up(share)
        parts.append(tag("line", x1=_LEFT, x2=_RIGHT, y1=_r(y), y2=_r(y), stroke=_GRID))
        parts.append(_text(_LEFT - 10, y + 4.5, f"{100 * share:g} %", size=13, fill=_SOFT, anchor="end"))
    ticks = [share / 10 for share in range(0, 11, 1 if start >= 0.5 else 2) if share / 10 >= start - 1e-9]
    for share in ticks:
        x = _across(share, start)
        parts.append(tag("line", x1=_r(x), x2=_r(x), y1=_TOP, y2=_BOTTOM, stroke=_GRID))
        parts.append(_text(x, _BOTTOM + 22, f"{100 * share:g} %", size=13, fill=_SOFT, anchor="middle"))
    parts.append(_text(_RIGHT, _BOTTOM + 48, f"{across} →", size=15, weight=600, fill=_INK, anchor="end"))
    how = tag("tspan", " (square-root scale)", font_weight=400, fill=_SOFT)
    said = tag("text", f"↑ {up}", how, x=_LEFT - 50, y=_TOP - 14, font_size=15, font_weight=600, fill=_INK)
    return [*parts, said]


def _path(line: dict[str, str], dots: Sequence[Dot]) -> Html:
    def drawn(points: list[tuple[float, float]], **more: Any) -> Html:
        at = " ".join(f"{_r(x)},{_r(y)}" for x, y in points)
        return tag("polyline", points=at, fill="none", stroke=line["colour"], **more)

    parts = [drawn([(dot.x, dot.y) for dot in dots], stroke_width=2, stroke_opacity=0.75)]
    bounds = [(dot.x, dot.bound) for dot in dots if dot.bound is not None]
    if bounds:
        (x, y), *_ = bounds
        ends = bounds if len(bounds) > 1 else [(x - 14, y), (x + 14, y)]
        parts.append(drawn(ends, stroke_width=1.5, stroke_dasharray="5 4"))
        parts += [drawn([(x - 7, y), (x + 7, y)], stroke_width=1.5) for x, y in bounds]
    return join(parts)


def _mark(line: dict[str, str], dot: Dot) -> Html:
    ends = [(dot.x, dot.x, dot.low, dot.high)]
    if dot.right - dot.left > 0.5:
        ends.append((dot.left, dot.right, dot.y, dot.y))
    look = {"stroke": line["colour"], "stroke_width": 1.5}
    bars = [tag("line", x1=_r(x1), x2=_r(x2), y1=_r(y1), y2=_r(y2), **look) for x1, x2, y1, y2 in ends]
    return tag("g", tag("title", dot.title), *bars, symbol(line["shape"], dot.x, dot.y, line["colour"]))


def _labels(dots: Sequence[Dot], lines: Sequence[dict[str, str]]) -> list[Html]:
    """Write beside each marker what it is; a label that would cover something is left out."""
    taken: list[Box] = [(dot.x - 6, dot.y - 6, dot.x + 6, dot.y + 6) for dot in dots]
    parts = []
    for dot in dots:
        wide = 6.6 * len(dot.label)
        for x, y, anchor in (
            (dot.x + 10, dot.y + 4, "start"),
            (dot.x - 10, dot.y + 4, "end"),
            (dot.x, dot.y - 11, "middle"),
            (dot.x, dot.y + 19, "middle"),
        ):
            left = x - wide * {"start": 0, "end": 1, "middle": 0.5}[anchor]
            box = (left, y - 11, left + wide, y + 3)
            if left > _LEFT and left + wide < _RIGHT + 30 and not any(_meet(box, other) for other in taken):
                taken.append(box)
                parts.append(_text(x, y, dot.label, size=12, fill=lines[dot.line]["colour"], anchor=anchor))
                break
    return parts


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _legend(shown: Sequence[tuple[int, dict[str, str]]], bounds: bool) -> list[Html]:
    x, y = _RIGHT + 50, _TOP + 8
    parts = []
    for place, (_, line) in enumerate(shown):
        at = y + 24 * place
        parts.append(tag("line", x1=x - 13, x2=x + 13, y1=at, y2=at, stroke=line["colour"], stroke_width=2))
        parts.append(symbol(line["shape"], x, at, line["colour"]))
        name = line["name"] if len(line["name"]) <= 25 else line["name"][:24] + "…"
        parts.append(_text(x + 20, at + 4.5, name, size=13, fill=_INK))
    if bounds:
        at = y + 24 * len(shown)
        look = {"stroke": _SOFT, "stroke_width": 1.5, "stroke_dasharray": "5 4"}
        parts.append(tag("line", x1=x - 13, x2=x + 13, y1=at, y2=at, **look))
        parts.append(_text(x + 20, at + 4.5, "the bound that is stated", size=13, fill=_SOFT))
    return parts


def symbol(shape: str, x: float, y: float, colour: str, r: float = 6) -> Html:
    """Draw a marker."""
    if shape == "circle":
        return tag("circle", cx=_r(x), cy=_r(y), r=r, fill=colour, stroke="#ffffff", stroke_width=1)
    at = " ".join(f"{_r(x + r * dx)},{_r(y + r * dy)}" for dx, dy in _OUTLINES[shape])
    return tag("polygon", points=at, fill=colour, stroke="#ffffff", stroke_width=1)


def _star() -> list[tuple[float, float]]:
    turns = ((math.pi * step / 5 - math.pi / 2, 1.35 if step % 2 == 0 else 0.55) for step in range(10))
    return [(size * math.cos(turn), size * math.sin(turn)) for turn, size in turns]


_PLUS: Final = [
    (-0.4, -1.1), (0.4, -1.1), (0.4, -0.4), (1.1, -0.4), (1.1, 0.4), (0.4, 0.4),
    (0.4, 1.1), (-0.4, 1.1), (-0.4, 0.4), (-1.1, 0.4), (-1.1, -0.4), (-0.4, -0.4),
]  # fmt: skip
_OUTLINES: Final[dict[str, list[tuple[float, float]]]] = {
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "diamond": [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
    "triangle-up": [(0, -1.2), (1.15, 0.85), (-1.15, 0.85)],
    "triangle-down": [(0, 1.2), (1.15, -0.85), (-1.15, -0.85)],
    "cross": _PLUS,
    "x": [((dx - dy) * math.sqrt(0.5), (dx + dy) * math.sqrt(0.5)) for dx, dy in _PLUS],
    "star": _star(),
}


def _text(
    x: float, y: float, text: str, *, size: int, fill: str, anchor: str = "start", weight: int | None = None
) -> Html:
    return tag(
        "text", text, x=_r(x), y=_r(y), font_size=size, fill=fill, text_anchor=anchor, font_weight=weight
    )


def _r(value: float) -> str:
    return f"{value:.1f}"

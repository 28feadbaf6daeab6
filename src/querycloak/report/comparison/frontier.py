"""The points of the privacy–utility frontier: what each candidate keeps against what is linked of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from querycloak.report.comparison.axes import AXES, kept
from querycloak.report.comparison.figures import UNITS
from querycloak.report.comparison.linked import ATTACKERS
from querycloak.report.comparison.result import Comparison
from querycloak.report.document import shown

#: Colours that people with any kind of sight tell apart, on white paper and on a dark screen.
_LIGHT: Final = ("#0072b2", "#d55e00", "#00876c", "#b5548a", "#a67c00", "#332288", "#882255", "#5f6b76")
_DARK: Final = ("#56b4e9", "#ff8a4c", "#35c9a3", "#e79bc6", "#e6b800", "#a79bf0", "#e57a9e", "#aeb8c0")
_SHAPES: Final = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star")
#: What is shown before a reader chooses.
AXIS, ATTACKER = "terms", "any"


def looks(place: int) -> dict[str, str]:
    """Give the look of a line: no two of 64 lines have both colour and shape in common."""
    kinds = len(_SHAPES)
    return {
        "colour": _LIGHT[place % kinds],
        "dark": _DARK[place % kinds],
        "shape": _SHAPES[(place + place // kinds) % kinds],
    }


def frontier(comparison: Comparison) -> dict[str, Any]:
    """Give all that any picture of the frontier shows, as plain values.

    `x` has for each axis what is kept, its low and its high end; `y` has for each attacker the share that is
    linked, its ends, the attack and the bound, where one is stated for that attack.
    """
    names = list(dict.fromkeys(one["line"] for one in comparison.worked))
    return {
        "lines": [{"name": name, **looks(place)} for place, name in enumerate(names)],
        "axes": [
            {"name": axis.name, "title": _title(axis.title), "about": axis.about} for axis in AXES.values()
        ],
        "attackers": attackers(comparison),
        "points": [_point(one, names.index(one["line"])) for one in sorted(comparison.worked, key=_along)],
    }


def _along(one: Mapping[str, Any]) -> float:
    """Order settings along their line: candidates may have been asked for in any order."""
    value = one["along"] and one["along"]["value"]
    return float(value) if isinstance(value, int | float) else 0.0


def attackers(comparison: Comparison) -> list[dict[str, str]]:
    """Give what may stand on the upright axis: kinds of attackers, then each attack alone."""
    units = {
        label: UNITS.get(found["unit"], found["unit"])
        for one in comparison.worked
        for label, found in one["findings"].items()
        if found["success"] is not None
    }
    kinds = {
        "release": "Linked by who sees only the release",
        "knowing": "Linked by who knows more",
        "any": "Linked by the best of all attacks",
    }
    return [{"name": name, "title": kinds[name]} for name in ATTACKERS] + [
        {
            "name": f"attack:{one['label']}",
            "title": f"{one['label']} is right for this share of {units[one['label']]}",
        }
        for one in comparison.data["attacks"]
        if one["label"] in units
    ]


def _point(one: Mapping[str, Any], line: int) -> dict[str, Any]:
    linked = {name: _linked(one, found["attack"]) if found else None for name, found in one["linked"].items()}
    single = {
        f"attack:{label}": _linked(one, label)
        for label, found in one["findings"].items()
        if found["success"] is not None
    }
    return {
        "name": one["name"],
        "line": line,
        "label": label_of(one),
        "settings": settings_of(one),
        "x": {name: kept(one, name) for name in AXES},
        "y": {name: found for name, found in (linked | single).items() if found},
    }


def _linked(one: Mapping[str, Any], attack: str) -> dict[str, Any]:
    found = one["findings"][attack]
    return {
        "attack": attack,
        "share": found["success"],
        "low": found["low"],
        "high": found["high"],
        "bound": found["bound"],
    }


def label_of(one: Mapping[str, Any]) -> str:
    """Give the short text beside a marker: the setting along the line, or the name of a lone candidate."""
    if one["along"] is None:
        return str(one["name"])
    value = one["along"]["value"]
    short = {"epsilon": "ε"}.get(name := one["along"]["setting"].rpartition(".")[2], name)
    return f"{short}={value:g}" if isinstance(value, int | float) else f"{short}={value}"


def settings_of(one: Mapping[str, Any]) -> str:
    """Write all settings on one line."""
    several = len(one["settings"]) > 1
    return "; ".join(
        (f"{method}: " if several else "")
        + ", ".join(f"{name}={shown(value)}" for name, value in settings.items())
        for method, settings in one["settings"].items()
    )


def _title(text: str) -> str:
    return text[:1].upper() + text[1:]

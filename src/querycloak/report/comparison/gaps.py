"""What methods do not protect against, told once for all settings of a method."""

from __future__ import annotations

import re
from typing import Any

from querycloak.report.comparison.axes import USES, kept
from querycloak.report.comparison.figures import percent
from querycloak.report.comparison.result import Comparison

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def unprotected(comparison: Comparison) -> dict[str, list[str]]:
    """Give for each method what it leaves open; where only a number differs, the setting stands for it."""
    found: dict[str, dict[str, list[tuple[str, Any]]]] = {}
    for one in comparison.worked:
        for promise in one["promises"]:
            lines = found.setdefault(promise["method"], {})
            for text in promise["does_not_protect_against"]:
                lines.setdefault(_NUMBER.sub("#", text), []).append((text, one["along"]))
    return {method: [_general(texts) for texts in lines.values()] for method, lines in found.items()}


def _general(texts: list[tuple[str, Any]]) -> str:
    """Write one text for several that differ in numbers: `k accounts` for `5 accounts` and `10 accounts`."""
    first = texts[0][0]
    numbers = [_NUMBER.findall(text) for text, _ in texts]
    if len(set(map(tuple, numbers))) == 1:
        return first
    names = [along["setting"].rpartition(".")[2] if along else "n" for _, along in texts]
    name = names[0] if len(set(names)) == 1 else "n"
    varying = iter(len({row[place] for row in numbers}) > 1 for place in range(len(numbers[0])))
    return _NUMBER.sub(lambda number: name if next(varying) else number[0], first)


def keeps(comparison: Comparison, method: str) -> str:
    """Say what a method keeps by itself, from its lowest to its highest over the settings that were tried."""
    told = []
    for axis in USES:
        values = [
            found[0] for one in comparison.worked if one["methods"] == [method] and (found := kept(one, axis))
        ]
        if values:
            low, high = percent(min(values)), percent(max(values))
            told.append(f"{axis.title.removesuffix(' kept')} {low if low == high else f'{low} to {high}'}")
    return ", ".join(told)

"""How numbers of a comparison are written, the same wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What an attack's success is a share of.
UNITS = {"record": "records", "user": "people", "pair": "pairs of records", "concept": "replaced phrases"}


def percent(share: float | None) -> str:
    """Write a share; a small one keeps its first digits, so that it is not taken for none."""
    if share is None:
        return "–"
    hundredths = 100 * share
    if 0 < hundredths < 0.1:
        return "<0.01 %" if hundredths < 0.01 else f"{hundredths:.2f} %"
    return f"{hundredths:.1f} %"


def span(low: float, high: float) -> str:
    """Write an interval of shares."""
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def with_interval(found: Mapping[str, Any] | None) -> str:
    """Write an attack's success with its interval."""
    if found is None or found["success"] is None:
        return "–"
    return f"{percent(found['success'])} ({span(found['low'], found['high'])})"


def kept_text(found: tuple[float, float, float] | None) -> str:
    """Write what is kept; the interval only where runs were repeated and differ."""
    if found is None:
        return "–"
    value, low, high = found
    return percent(value) if low == high else f"{percent(value)} ({span(low, high)})"


def unit_of(candidate: Mapping[str, Any], attack: str) -> str:
    """Say what an attack's success on a candidate is a share of."""
    unit = str(candidate["findings"][attack]["unit"])
    return UNITS.get(unit, unit)


def seconds(value: float) -> str:
    """Write a time."""
    return f"{value:.1f} s" if value < 100 else f"{value:,.0f} s"


def megabytes(value: float) -> str:
    """Write an amount of memory."""
    return f"{value:,.0f} MB"


def listed(names: list[str], most: int = 6) -> str:
    """Write a few names in a row, and how many more there are."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1] if names else "") if part)

"""How numbers and values are written in reports."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from querycloak.formatting import percent
from querycloak.intervals import Estimate


def span(low: float, high: float) -> str:
    """Return an interval of shares: `1.0 to 2.0 %`."""
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def with_interval(share: Estimate | None) -> str:
    """Return a share with its interval: `1.5 % (1.0 to 2.0 %)`."""
    return "–" if share is None else f"{percent(share.value)} ({span(share.low, share.high)})"


def with_spread(share: Estimate | None) -> str:
    """Return a share; with its interval only where repeated runs differ."""
    return (
        percent(share and share.value) if share is None or share.low == share.high else with_interval(share)
    )


def seconds(value: float) -> str:
    """Return a duration."""
    return f"{value:.1f} s" if value < 100 else f"{value:,.0f} s"


def megabytes(value: float) -> str:
    """Return an amount of memory."""
    return f"{value:,.0f} MB"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Return names as `a, b and c`, or `a, b and 5 more`."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1] if names else "") if part)


def capitalised(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def printable(value: Any) -> str:
    """Return any value on one line, without characters that a terminal or a browser obeys."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(name)} {printable(part)}" for name, part in value.items()) or "–"
    if isinstance(value, list | tuple):
        return ", ".join(printable(part) for part in value) or "–"
    return one_line(str(value))


def one_line(text: str) -> str:
    """Return a text on one line; control and direction characters become blanks."""
    blank = (" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in text)
    return " ".join("".join(blank).split())

"""Numbers and tables for readers: percent, plural forms, small HTML tables for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

#: Verdicts of audits as people read them; JSON has the other words.
_VERDICTS: Final = {"kept": "passed", "broken": "failed", "not checkable": "not tested"}


def table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Return a table as HTML, with every cell escaped."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{said}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def verdict_word(verdict: str) -> str:
    """Return the word for a verdict of an audit: passed, failed, not tested or not applicable."""
    return _VERDICTS.get(verdict, verdict)


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share as a percentage; a small one keeps two digits, so that it is not read as zero."""
    if share is None:
        return "–"
    hundredths = 100 * share
    if digits and 0 < hundredths < 0.1:
        return "<0.01 %" if hundredths < 0.01 else f"{hundredths:.2f} %"
    return f"{hundredths:.{digits}f} %"


def number(value: Any) -> str:
    """Return a number with separators and four digits; a dash for NaN."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def plural(count: int, word: str, several: str | None = None) -> str:
    """Return `1 row`, `2 rows`, or `2 queries` with `several="queries"`."""
    return f"{count:,} {word if count == 1 else several or word + 's'}"

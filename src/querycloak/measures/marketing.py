"""What a release is still worth to advertising: paper 001's seven shares."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[a-z0-9]+")
_VALUES = ("bid", "clicks", "impressions", "revenue")

Histories = Mapping[Any, Sequence[str]] | Sequence[Sequence[str]]


def terms(query: str) -> list[str]:
    """Split a query at everything but letters and digits; marks belong to the letter before them.

    >>> terms("Cheap flights: New-York")
    ['cheap', 'flights', 'new', 'york']
    """
    text = query.lower()
    if text.isascii():
        return _PLAIN.findall(text)
    kept = "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text)
    words = (_without_leading_marks(word) for word in kept.split(" "))
    return [word for word in words if word]


def _without_leading_marks(word: str) -> str:
    while word and not word[0].isalnum():
        word = word[1:]
    return word


def retention(
    original: Histories, released: Histories, marketing: Mapping[str, Mapping[str, float]] | None = None
) -> dict[str, float]:
    """Give in percent what is left of distinct terms, log size, users, and of the value to advertisers.

    A log is a mapping from user to queries, or a sequence of histories. `marketing` maps a term to
    its `bid`, `impressions` and `clicks`; values are weighted by how often the term occurs.

    >>> retention({"u": ["red shoes"], "v": ["shoes"]}, {"u": ["shoes"], "v": ["shoes"]})
    {'distinct_terms': 50.0, 'log_size': 66.66666666666667, 'users': 100.0}
    """
    return retention_of(profile(original), profile(released), marketing)


def profile(histories: Histories) -> tuple[Counter[str], int]:
    """Count a log's terms, and its users who have any."""
    lists: Iterable[Sequence[str]] = histories.values() if isinstance(histories, Mapping) else histories
    counts: Counter[str] = Counter()
    users = 0
    for history in lists:
        own = [term for query in history for term in terms(query)]
        counts.update(own)
        users += bool(own)
    return counts, users


def retention_of(
    before: tuple[Counter[str], int],
    after: tuple[Counter[str], int],
    marketing: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, float]:
    """Do the same from counts of terms and users."""
    shares = {
        "distinct_terms": _percent(len(after[0]), len(before[0])),
        "log_size": _percent(after[0].total(), before[0].total()),
        "users": _percent(after[1], before[1]),
    }
    if marketing is not None:
        for value in _VALUES:
            shares[value] = _percent(_worth(after[0], marketing, value), _worth(before[0], marketing, value))
    return shares


def _worth(counts: Counter[str], marketing: Mapping[str, Mapping[str, float]], value: str) -> float:
    return sum(count * _value(marketing[term], value) for term, count in counts.items() if term in marketing)


def _value(row: Mapping[str, float], value: str) -> float:
    if value == "revenue":
        return (row.get("bid") or 0.0) * (row.get("clicks") or 0.0)
    return row.get(value) or 0.0


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else float("nan")

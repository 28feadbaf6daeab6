"""What one history says about its owner, in counts: plain functions of queries, hours and topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from math import comb
from typing import Final

#: A query is a habit from so many times on.
REPEATED: Final = 3
#: Hours of the quietest stretch of a day.
NIGHT: Final = 6

#: What many people would not want told, by the topics that tell it. The first five are near to what European
#: law calls special categories; the choice is ours.
SENSITIVE: Final[Mapping[str, tuple[str, ...]]] = {
    "health": ("Health",),
    "sex life": ("Adult", "Health/Sexual Health"),
    "religion": ("Society/Religion",),
    "politics": ("News/Politics", "Society/Government", "Society/Issues"),
    "origin and ancestors": ("Society/Ethnicity", "Society/Genealogy", "Reference/Genealogy Records"),
    "crime and law": ("Society/Crime", "Society/Law", "Business/Law Firms"),
    "money": ("Business/Banking", "Business/Taxes", "Business/Insurance", "Business/Investing"),
    "looking for work": ("Business/Employment",),
    "relationships and family": ("Society/Relationships", "Home/Family", "Home/Weddings"),
    "death and crisis": ("Society/Death", "Society/Support Groups", "Health/Mental Health"),
}


def cut(path: str, level: int) -> str | None:
    """Cut a category to a level; None if it is not that deep."""
    parts = path.split("/")
    return "/".join(parts[:level]) if len(parts) >= level else None


def sensitive(paths: Iterable[str]) -> dict[str, int]:
    """Count the searches about each sensitive matter; one search may count for several."""
    seen, found = Counter(paths), Counter[str]()
    for path, count in seen.items():
        for name, roots in SENSITIVE.items():
            if any(path == root or path.startswith(f"{root}/") for root in roots):
                found[name] += count
    return {name: found[name] for name in SENSITIVE if found[name]}


def repeated(queries: Iterable[str]) -> dict[str, int]:
    """Return the queries that come back, the most frequent first; upper and lower case are the same."""
    counts = Counter(" ".join(query.casefold().split()) for query in queries)
    often = [(query, count) for query, count in counts.items() if count >= REPEATED]
    return dict(sorted(often, key=lambda pair: (-pair[1], pair[0])))


def quiet_hours(by_hour: Sequence[int]) -> tuple[int, float]:
    """Return the first hour of the quietest stretch of the day, and its share of the searches.

    >>> quiet_hours([0] * 7 + [5] * 17)
    (0, 0.0)
    """
    sums = [sum(by_hour[(start + hour) % 24] for hour in range(NIGHT)) for start in range(24)]
    first = min(range(24), key=lambda start: (sums[start], start))
    return first, sums[first] / max(1, sum(by_hour))


def left_by_topics(own: Set[str], crowd: Sequence[Set[str]], known: int) -> float | None:
    """Return how many of the crowd have all of `known` random topics of a user: the exact mean.

    None if you have fewer topics than that.

    >>> left_by_topics({"a", "b"}, [{"a"}, {"a", "b"}], 1)
    1.5
    """
    if known > len(own):
        return None
    every = comb(len(own), known)
    return sum(comb(len(own & other), known) / every for other in crowd)

"""The 27 relations of paper 004, Table 3, one after the other, from what is known of two searches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

UNKNOWN = math.nan


@dataclass(frozen=True)
class Search:
    """A search with its features; none where one is not known. `landing` has (stem, weight) for each word."""

    time: datetime | None = None
    clicks: int | None = None
    query: str | None = None
    terms: Sequence[str] = ()
    landing: Sequence[tuple[str, float]] = ()
    adult: Sequence[str] = ()
    landing_adult: Sequence[str] = ()
    errors: int = 0
    categories: frozenset[str] = frozenset()
    cities: frozenset[str] = frozenset()
    countries: frozenset[str] = frozenset()
    urls: Sequence[str] = ()
    popularity: float = UNKNOWN


def jaccard(a: Iterable[str], b: Iterable[str]) -> float:
    """Compare bags: what both have, over what either has."""
    first, second = Counter(a), Counter(b)
    either = (first | second).total()
    return (first & second).total() / either if either else 0.0


def edits(a: str, b: str) -> int:
    """Levenshtein's distance, by its definition as a table."""
    table = [[i + j for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            change = table[i - 1][j - 1] + (a[i - 1] != b[j - 1])
            table[i][j] = min(change, table[i - 1][j] + 1, table[i][j - 1] + 1)
    return table[-1][-1]


def weights(landing: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Sum the weights of each stem."""
    found: dict[str, float] = {}
    for stem, weight in landing:
        found[stem] = found.get(stem, 0.0) + weight
    return found


def steps(a: str, b: str) -> int:
    """Count the edges between two categories of a tree."""
    first, second = a.split("/"), b.split("/")
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    return len(first) + len(second) - 2 * shared


def at_level(paths: Iterable[str], level: int) -> set[str]:
    """Cut those paths that are long enough."""
    return {"/".join(path.split("/")[:level]) for path in paths if path.count("/") >= level - 1}


def relations(a: Search, b: Search) -> dict[str, float]:
    """Give all relations of two searches by name."""
    return {**_by_time(a, b), **_by_pages(a, b), **_by_topic(a, b), **_by_query(a, b)}


def _by_time(a: Search, b: Search) -> dict[str, float]:
    clicks = UNKNOWN if a.clicks is None or b.clicks is None else abs(a.clicks - b.clicks)
    if a.time is None or b.time is None:
        return dict.fromkeys(("D_Time", "S_WeekWeekend", "S_SameDaytime"), UNKNOWN) | {
            "D_NumberClicks": clicks
        }
    return {
        "D_Time": abs((a.time - b.time).total_seconds()),
        "S_WeekWeekend": (a.time.isoweekday() > 5) == (b.time.isoweekday() > 5),
        "S_SameDaytime": a.time.hour // 2 == b.time.hour // 2,
        "D_NumberClicks": clicks,
    }


def _by_pages(a: Search, b: Search) -> dict[str, float]:
    found = {"S_UrlTerms": jaccard(a.urls, b.urls) if a.urls and b.urls else UNKNOWN}
    if not a.landing or not b.landing:
        names = ("S_LandPagTerms1", "S_LandPagTerms2", "S_LandPagTerms3", "S_LandPagAdultTerms")
        return found | dict.fromkeys(names, UNKNOWN)
    first, second = weights(a.landing), weights(b.landing)
    common = first.keys() & second.keys()
    lengths = [math.sqrt(sum(weight**2 for weight in page.values())) for page in (first, second)]
    return found | {
        "S_LandPagTerms1": jaccard([stem for stem, _ in a.landing], [stem for stem, _ in b.landing]),
        "S_LandPagTerms2": sum(first[stem] for stem in common) / sum(first.values()),
        "S_LandPagTerms3": sum(first[stem] * second[stem] for stem in common) / math.prod(lengths),
        "S_LandPagAdultTerms": jaccard(a.landing_adult, b.landing_adult),
    }


def _by_topic(a: Search, b: Search) -> dict[str, float]:
    if not a.categories or not b.categories:
        return dict.fromkeys(("S_Level2Cat", "S_Level3Cat", "D_TreeDistance"), UNKNOWN)
    apart = [steps(x, y) for x in a.categories for y in b.categories]
    return {
        "S_Level2Cat": bool(at_level(a.categories, 2) & at_level(b.categories, 2)),
        "S_Level3Cat": bool(at_level(a.categories, 3) & at_level(b.categories, 3)),
        "D_TreeDistance": sum(apart) / len(apart),
    }


QUERY = (
    *("S_QueryTerms", "D_QueryTermLen", "D_QueryCharacterLen", "S_AdultTerms1", "S_AdultTerms2"),
    *("S_AdultTerms3", "D_SpellingErrors", "S_SpellingError1", "S_SpellingError2", "S_City", "S_Country"),
    *("S_Location1", "S_Location2", "D_QueryTermWeight", "D_EditDistance"),
)


def _by_query(a: Search, b: Search) -> Mapping[str, float]:
    if a.query is None or b.query is None:
        return dict.fromkeys(QUERY, UNKNOWN)
    here, there = bool(a.cities or a.countries), bool(b.cities or b.countries)
    return {
        "S_QueryTerms": jaccard(a.terms, b.terms) if a.terms and b.terms else UNKNOWN,
        "D_QueryTermLen": abs(len(a.terms) - len(b.terms)),
        "D_QueryCharacterLen": abs(len(a.query) - len(b.query)),
        "S_AdultTerms1": jaccard(a.adult, b.adult),
        "S_AdultTerms2": bool(a.adult) and bool(b.adult),
        "S_AdultTerms3": bool(a.adult) != bool(b.adult),
        "D_SpellingErrors": abs(a.errors - b.errors),
        "S_SpellingError1": a.errors > 0 and b.errors > 0,
        "S_SpellingError2": (a.errors > 0) != (b.errors > 0),
        "S_City": bool(a.cities & b.cities),
        "S_Country": bool(a.countries & b.countries),
        "S_Location1": here and there,
        "S_Location2": here != there,
        "D_QueryTermWeight": abs(a.popularity - b.popularity),
        "D_EditDistance": edits(a.query, b.query),
    }

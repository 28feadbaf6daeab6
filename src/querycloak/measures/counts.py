"""Counts of two logs: records, frequent items, terms and their value, and how far distributions lie apart."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from typing import Any

import polars as pl

from querycloak.errors import NotApplicable
from querycloak.measures.base import Kind, LogPair, Measure, Unit, counted, words_of
from querycloak.text.normalise import words

#: The values to advertisers, each with the columns that are multiplied.
_VALUES = {
    "bid": ("bid",),
    "clicks": ("clicks",),
    "impressions": ("impressions",),
    "revenue": ("bid", "clicks"),
}

Marketing = Mapping[str, Mapping[str, float]]
Histories = Mapping[Any, Sequence[str]] | Sequence[Sequence[str]]


def release_rate(original: Sized, released: Sized) -> float:
    """Return the share of the original's records that were released.

    >>> release_rate(["a", "b", "c", "d"], ["a", "d"])
    0.5
    """
    return len(released) / len(original) if len(original) else float("nan")


def top_preserved(original: Iterable[Hashable], released: Iterable[Hashable], n: int = 10) -> float:
    """Return the share of the original's n most frequent items that are among the release's n most frequent.

    Ties at the edge are broken in the original's favour: an item counts as kept when it is as
    frequent in the release as the release's n-th.

    >>> top_preserved(["a", "a", "b", "c"], ["a", "c", "c"], n=2)
    0.5
    """
    if n < 1:
        raise ValueError("n must be at least 1")
    return top_preserved_counts(Counter(original), Counter(released), n)


def top_preserved_counts(before: Counter[Hashable], after: Counter[Hashable], n: int) -> float:
    """Return `top_preserved` from counts."""
    top = [item for item, _ in sorted(before.items(), key=lambda pair: (-pair[1], str(pair[0])))[:n]]
    if not top:
        return float("nan")
    edge = sorted(after.values(), reverse=True)[:n][-1] if after else 1
    return sum(after[item] >= max(edge, 1) for item in top) / len(top)


def retention(
    original: Histories, released: Histories, marketing: Mapping[str, Mapping[str, float]] | None = None
) -> dict[str, float]:
    """Return in percent what is left of distinct terms, log size, users, and of the value to advertisers.

    A log is a mapping from user to queries, or a sequence of histories. `marketing` maps a term to
    its `bid`, `impressions` and `clicks`; values are weighted by how often the term occurs.

    >>> retention({"u": ["red shoes"], "v": ["shoes"]}, {"u": ["shoes"], "v": ["shoes"]})
    {'distinct_terms': 50.0, 'log_size': 66.66666666666667, 'users': 100.0}
    """
    (before, users), (after, left) = (_profile(side) for side in (original, released))
    return _retention(before, after, _percent(left, users), marketing)


def _profile(histories: Histories) -> tuple[Counter[Any], int]:
    """Return a log's terms with their counts, and the number of its users who have any."""
    lists = list(histories.values() if isinstance(histories, Mapping) else histories)
    queries = pl.Series([query for history in lists for query in history], dtype=pl.String)
    user = pl.Series([place for place, history in enumerate(lists) for _ in history], dtype=pl.Int64)
    split = words(queries)
    return counted(split.explode().drop_nulls()), user.filter(split.list.len() > 0).n_unique()


def _retention(
    before: Counter[Any], after: Counter[Any], users: float, marketing: Marketing | None
) -> dict[str, float]:
    """Return `retention` from counts of terms and the share of users."""
    shares = {
        "distinct_terms": _percent(len(after), len(before)),
        "log_size": _percent(after.total(), before.total()),
        "users": users,
    }
    if marketing is None:
        return shares
    return shares | {
        value: _percent(*(_worth(side, marketing, factors) for side in (after, before)))
        for value, factors in _VALUES.items()
    }


def _worth(counts: Counter[str], marketing: Marketing, factors: Sequence[str]) -> float:
    known = ((count, marketing[term]) for term, count in counts.items() if term in marketing)
    return sum(count * math.prod(row.get(name) or 0.0 for name in factors) for count, row in known)


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else float("nan")


def _normalised(weights: Sequence[float]) -> list[float]:
    if any(not weight >= 0 for weight in weights):  # NaN is not at least 0 either
        raise ValueError("weights must be numbers of at least 0")
    total = math.fsum(weights)
    if not 0 < total < math.inf:
        raise ValueError("weights must have a positive, finite sum")
    return [weight / total for weight in weights]


def jensen_shannon(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the Jensen–Shannon divergence of two equally long sequences of weights: base 2, 0 to 1.

    >>> jensen_shannon([1, 0], [0, 3])
    1.0
    """
    if len(p) != len(q):
        raise ValueError(f"the sequences must be equally long; got {len(p)} and {len(q)}")
    pairs = list(zip(_normalised(p), _normalised(q), strict=True))
    total = math.fsum(_towards_middle(a, b) + _towards_middle(b, a) for a, b in pairs)
    return min(1.0, max(0.0, total / 2))


def _towards_middle(a: float, b: float) -> float:
    return a * math.log2(2 * a / (a + b)) if a > 0 else 0.0


def tree_emd(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return the exact earth mover's distance of two `{path: count}` on the tree of their paths.

    Each is normalised to 1 and every edge is 1 long, the one from the root to level 1 too. On a tree
    the least cost is the sum over all edges of the difference of the mass below them.

    >>> tree_emd({"Sports/Soccer": 4}, {"Sports/Tennis": 1})
    2.0
    """
    below: dict[str, list[float]] = defaultdict(list)
    for sign, counts in ((1.0, a), (-1.0, b)):
        weights = _normalised(list(counts.values()))
        for path, weight in zip(counts, weights, strict=True):
            for edge in _prefixes(path):
                below[edge].append(sign * weight)
    return math.fsum(abs(math.fsum(masses)) for masses in below.values())


def _prefixes(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[: depth + 1]) for depth in range(len(names))]


def largest_tree_emd(paths: Sequence[str]) -> float:
    """Return the largest distance that two distributions over these paths can have: the tree's diameter."""
    deepest: dict[str, int] = {}
    for path in paths:
        top = path.partition("/")[0]
        deepest[top] = max(deepest.get(top, 0), path.count("/") + 1)
    best = sorted(deepest.values(), reverse=True)[:2]
    return float(sum(best)) if len(best) == 2 else float(2 * max(best[0] - 1, 0) if best else 0)


class ReleaseRate(Measure):
    """The share of records that were released."""

    name, help = "release_rate", "share of the original's records that were released"
    unit, kind = Unit.SHARE, Kind.USE

    def __call__(self, pair: LogPair) -> float:
        """Compare the numbers of rows."""
        return release_rate(pair.original, pair.released)


class TopPreserved(Measure):
    """The share of the most frequent queries, words and categories that are still the most frequent."""

    name, help = "top_preserved", "share of the 10 and 100 most frequent queries, words and categories kept"
    unit, kind = Unit.SHARE, Kind.USE

    def __call__(self, pair: LogPair) -> dict[str, Any]:
        """Compare the tops of both logs."""
        found: dict[str, Any] = {}
        for what, column, split in (
            ("queries", "query", None),
            ("words", "query", words_of),
            ("categories", "category", None),
        ):
            try:
                before, after = (counted(split(side) if split else side) for side in pair.both(column))
            except NotApplicable:
                continue
            found |= {f"{what}_{n}": top_preserved_counts(before, after, n) for n in (10, 100)}
        if not found:
            raise NotApplicable("the release has neither queries nor categories")
        return found


class Retention(Measure):
    """What is left of terms, log size, users and value to advertisers, in percent."""

    name = "retention"
    help = "percent of distinct terms, log size, users (and bid, clicks, impressions, revenue) kept"
    unit, kind = Unit.PERCENT, Kind.USE
    headline = "log_size"

    def __call__(self, pair: LogPair) -> dict[str, float]:
        """Compare counts of terms and users."""
        before, after = (counted(words_of(side)) for side in pair.both("query"))
        return _retention(before, after, self._users(pair), pair.marketing)

    @staticmethod
    def _users(pair: LogPair) -> float:
        """Return the percentage of users with a released record: several labels can be of one user."""
        before = pair.original["user"].drop_nulls().unique()
        if pair.truth is not None:
            after = pair.of_truth("original_user")
        elif "user" in pair.released.columns:
            after = pair.released["user"]
        else:
            return float("nan")
        kept = int(after.drop_nulls().unique().is_in(before.implode()).sum())
        fresh = pair.truth is None and not kept
        return float("nan") if fresh or not before.len() else 100.0 * kept / before.len()


def _level_one(categories: pl.Series) -> pl.Series:
    return categories.str.split("/").list.first()


class JensenShannon(Measure):
    """How far the release's mixture of topics and of queries is from the original's."""

    name = "jensen_shannon"
    help = "divergence (base 2, 0 to 1) of the whole log's topics, categories and queries"
    unit, kind = Unit.SHARE, Kind.LOSS
    headline = "queries"

    def __call__(self, pair: LogPair) -> dict[str, float]:
        """Compare the distributions over level-1 topics, whole categories, and queries."""
        found = {"queries": self._of(*pair.both("query"))}
        try:
            before, after = pair.both("category")
        except NotApplicable:
            return found
        found["categories"] = self._of(before, after)
        found["topics"] = self._of(_level_one(before), _level_one(after))
        return found

    @staticmethod
    def _of(before: pl.Series, after: pl.Series) -> float:
        p, q = counted(before), counted(after)
        every = list(p | q)
        return jensen_shannon([p[item] for item in every], [q[item] for item in every])


class TreeEmd(Measure):
    """How far categories moved on the tree, as a share of the farthest they could have moved."""

    name = "tree_emd"
    help = "exact earth mover's distance of the whole log's categories, and as a share of the largest"
    unit, kind = Unit.SHARE, Kind.LOSS
    headline = "share_of_largest"

    def __call__(self, pair: LogPair) -> dict[str, float]:
        """Compare the distributions over categories."""
        before, after = (counted(side) for side in pair.both("category"))
        distance = tree_emd(before, after)  # type: ignore[arg-type]
        largest = largest_tree_emd([str(path) for path in before | after])
        return {"distance": distance, "share_of_largest": distance / largest if largest else 0.0}

"""How much of a log is still there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sized


def release_rate(original: Sized, released: Sized) -> float:
    """Give the share of the original's records that were released.

    >>> release_rate(["a", "b", "c", "d"], ["a", "d"])
    0.5
    """
    return len(released) / len(original) if len(original) else float("nan")


def top_preserved(original: Iterable[Hashable], released: Iterable[Hashable], n: int = 10) -> float:
    """Give the share of the original's n most frequent items that are among the release's n most frequent.

    Ties at the edge are broken in the original's favour: an item counts as kept when it is as
    frequent in the release as the release's n-th.

    >>> top_preserved(["a", "a", "b", "c"], ["a", "c", "c"], n=2)
    0.5
    """
    if n < 1:
        raise ValueError("n must be at least 1")
    return top_preserved_counts(Counter(original), Counter(released), n)


def top_preserved_counts(before: Counter[Hashable], after: Counter[Hashable], n: int) -> float:
    """Do the same from counts."""
    top = [item for item, _ in sorted(before.items(), key=lambda pair: (-pair[1], str(pair[0])))[:n]]
    if not top:
        return float("nan")
    edge = sorted(after.values(), reverse=True)[:n][-1] if after else 1
    return sum(after[item] >= max(edge, 1) for item in top) / len(top)

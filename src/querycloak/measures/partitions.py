"""How alike two ways to put the same users into groups are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

Labels = Sequence[Hashable]


def partition_distance(a: Labels, b: Labels) -> float:
    """Give the distance of two labelings of the same users: 0 for the same groups, at most 1.

    This is López de Mántaras's, as in paper 003's equation 5.17: what the two together tell about a user
    beyond what they tell alike, as a share of the former. Names of groups do not matter; `nan` for no users.

    >>> round(partition_distance([1, 1, 2, 2], ["x", "x", "x", "y"]), 6)
    0.792481
    """
    _check(a, b)
    if not a:
        return float("nan")
    together = _information(Counter(zip(a, b, strict=True)).values(), len(a))
    apart = _information(Counter(a).values(), len(a)) + _information(Counter(b).values(), len(b))
    return min(1.0, max(0.0, (2 * together - apart) / together)) if together else 0.0


def rand_index(a: Labels, b: Labels) -> float:
    """Give the share of the pairs of users on which two labelings agree: together in both, or in neither.

    1 for the same groups, also where there is no pair; `nan` for no users.

    >>> rand_index([1, 1, 2, 2], ["x", "x", "x", "y"])
    0.5
    """
    both, only_a, only_b, neither = _pairs(a, b)
    return _share(both + neither, both + only_a + only_b + neither, users=len(a))


def jaccard_index(a: Labels, b: Labels) -> float:
    """Give the share of the pairs of users together in either labeling that are together in both.

    1 for the same groups, also where nobody is together with anybody; `nan` for no users.

    >>> jaccard_index([1, 1, 2, 2], ["x", "x", "x", "y"])
    0.25
    """
    both, only_a, only_b, _ = _pairs(a, b)
    return _share(both, both + only_a + only_b, users=len(a))


def _check(a: Labels, b: Labels) -> None:
    if len(a) != len(b):
        raise ValueError(f"the labelings must be equally long; got {len(a)} and {len(b)}")


def _information(sizes: Iterable[int], users: int) -> float:
    return math.fsum(-size / users * math.log2(size / users) for size in sizes)


def _pairs(a: Labels, b: Labels) -> tuple[int, int, int, int]:
    """Count the pairs that are together in both, in the first only, in the second only, and in neither."""
    _check(a, b)
    both, in_a, in_b = (_together(Counter(groups)) for groups in (zip(a, b, strict=True), a, b))
    return both, in_a - both, in_b - both, math.comb(len(a), 2) - in_a - in_b + both


def _together(groups: Counter[Hashable]) -> int:
    return sum(math.comb(size, 2) for size in groups.values())


def _share(part: int, whole: int, users: int) -> float:
    if not users:
        return float("nan")
    return part / whole if whole else 1.0

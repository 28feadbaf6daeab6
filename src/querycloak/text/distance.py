"""Distances of categories, of users and of concepts by meaning."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Set
from itertools import takewhile

from querycloak.errors import ParameterError

#: Sums that agree to so many digits are equal: the order of adding changes later ones.
DIGITS = 9


def semantic_distance(path_a: str, path_b: str) -> float:
    """Return the share of the levels of two category paths that they do not share.

    0 for equal paths, 1 for different level-1 topics. Each level is a generalisation of the category,
    the category itself is the last one, and the root is none (it would be common to all).

    >>> semantic_distance("Sports/Water Sports/Swimming and Diving", "Sports/Water Sports/Windsurfing")
    0.5

    Reference: thesis 003, equation 5.10.
    """
    a, b = _parts(path_a), _parts(path_b)
    pairs = zip(a, b, strict=False)
    shared = len([1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)])
    together = len(a) + len(b) - shared
    return (together - shared) / together if together else 0.0


def user_distance(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return the distance of two histories, `{category path: count}`: each category to the nearest other one.

    0 if both have the same categories, 1 if they share no topic (or one of them is empty).

    Reference: thesis 003, equation 5.13.
    """
    total = math.fsum((*_checked(a).values(), *_checked(b).values()))
    if not total:
        return 0.0
    return (_to_nearest(a, b) + _to_nearest(b, a)) / total


def similarity(ancestors_a: Set[Hashable], ancestors_b: Set[Hashable]) -> float:
    """Return the similarity of two concepts by their ancestors, the concept itself and the root included.

    1 for equal sets, 0 for sets that share nothing. With several parents, the sets have the ancestors on
    every path.

    >>> round(similarity({"root", "A"}, {"root", "A", "A1"}), 5)
    0.58496

    Reference: paper 002, equation 5.
    """
    together = len(ancestors_a | ancestors_b)
    if not together:
        raise ParameterError("a set of ancestors holds at least the concept itself; both are empty")
    return 1 - math.log2(1 + (together - len(ancestors_a & ancestors_b)) / together)


def centroid_category(counts: Mapping[str, float]) -> str:
    """Return the category with the least total distance to all others, each weighted by its count.

    Ties go to the first in alphabetical order.

    Reference: thesis 003, section 5.5, centroid category.
    """
    present = {path: count for path, count in _checked(counts).items() if count}
    if not present:
        raise ParameterError("no category has a count above zero, so none is central")
    return min(sorted(present), key=lambda path: round(_total_distance(path, present), DIGITS))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")) if path else ()


def _checked(counts: Mapping[str, float]) -> Mapping[str, float]:
    if not all(math.isfinite(count) and count >= 0 for count in counts.values()):
        raise ParameterError("counts of categories must be finite and not negative")
    return counts


def _to_nearest(counts: Mapping[str, float], others: Mapping[str, float]) -> float:
    """Return the sum of the distances of all categories to the nearest one of the other history."""
    present = [path for path, count in others.items() if count]
    return math.fsum(
        count * min((semantic_distance(path, other) for other in present), default=1.0)
        for path, count in counts.items()
        if count
    )


def _total_distance(path: str, counts: Mapping[str, float]) -> float:
    return math.fsum(count * semantic_distance(path, other) for other, count in counts.items())

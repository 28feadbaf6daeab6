"""How far two categories, two users or two concepts lie apart in meaning."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Set

from querycloak.errors import ParameterError

#: Sums of the same terms in another order differ from here on; such sums count as equal.
DIGITS = 9


def semantic_distance(path_a: str, path_b: str) -> float:
    """Give the share of the levels of two category paths that they do not have in common.

    0 for equal paths, 1 for different level-1 topics. Each level is a generalisation of the category,
    the category itself is the last one, and the root is none (it would be common to all).

    >>> semantic_distance("Sports/Water Sports/Swimming and Diving", "Sports/Water Sports/Windsurfing")
    0.5

    Reference: thesis 003, equation 5.10.
    """
    a, b = _parts(path_a), _parts(path_b)
    shared = sum(1 for _ in _common(a, b))
    together = len(a) + len(b) - shared
    return (together - shared) / together if together else 0.0


def user_distance(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Compare two histories, `{category path: count}`: each category with the nearest of the other one.

    0 when both hold the same categories, 1 when they share no topic (or one of them is empty).

    Reference: thesis 003, equation 5.13.
    """
    total = math.fsum((*_checked(a).values(), *_checked(b).values()))
    if not total:
        return 0.0
    return (_one_way(a, _least_depths(b)) + _one_way(b, _least_depths(a))) / total


def similarity(ancestors_a: Set[Hashable], ancestors_b: Set[Hashable]) -> float:
    """Compare two concepts by all that lies above each, the concept itself and the root included.

    1 for equal sets, 0 for sets that share nothing. In a graph with several parents the sets hold the
    ancestors on every way up.

    >>> round(similarity({"root", "A"}, {"root", "A", "A1"}), 5)
    0.58496

    Reference: paper 002, equation 5.
    """
    together = len(ancestors_a | ancestors_b)
    if not together:
        raise ParameterError("a set of ancestors holds at least the concept itself; both are empty")
    return 1 - math.log2(1 + (together - len(ancestors_a & ancestors_b)) / together)


def centroid_category(counts: Mapping[str, float]) -> str:
    """Give the category with the least total distance to all others, each weighted by its count.

    Of several equally central ones the first in alphabetical order is taken, so that the answer never
    depends on the order of the counts.

    Reference: thesis 003, section 5.5, centroid category.
    """
    present = {path: count for path, count in _checked(counts).items() if count}
    if not present:
        raise ParameterError("no category has a count above zero, so none is central")
    below = _weights_below(present)
    return min(sorted(present), key=lambda path: round(-_closeness(_parts(path), below), DIGITS))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")) if path else ()


def _common(a: tuple[str, ...], b: tuple[str, ...]) -> Iterator[str]:
    for left, right in zip(a, b, strict=False):
        if left != right:
            return
        yield left


def _checked(counts: Mapping[str, float]) -> Mapping[str, float]:
    if not all(math.isfinite(count) and count >= 0 for count in counts.values()):
        raise ParameterError("counts of categories must be finite and not negative")
    return counts


def _prefixes(path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """List all that lies above a category, from the root down to the category itself."""
    return [path[:level] for level in range(len(path) + 1)]


def _least_depths(counts: Mapping[str, float]) -> dict[tuple[str, ...], int]:
    """For each node above a category: how deep the least deep category below it is."""
    least: dict[tuple[str, ...], int] = {}
    for path in (_parts(path) for path, count in counts.items() if count):
        for above in _prefixes(path):
            least[above] = min(len(path), least.get(above, len(path)))
    return least


def _one_way(counts: Mapping[str, float], least: Mapping[tuple[str, ...], int]) -> float:
    return math.fsum(count * _nearest(_parts(path), least) for path, count in counts.items() if count)


def _nearest(path: tuple[str, ...], least: Mapping[tuple[str, ...], int]) -> float:
    """Give the distance to the nearest category in one walk up, instead of comparing with each.

    Among the categories below one ancestor the least deep one is the nearest; counting too few shared
    levels for it only makes it look farther, and its true common ancestor is met on the same walk.
    """
    if path in least and least[path] == len(path):
        return 0.0
    levels = (
        (level, least[above]) for level, above in enumerate(_prefixes(path)) if level and above in least
    )
    return 1 - max((level / (len(path) + depth - level) for level, depth in levels), default=0.0)


def _weights_below(counts: Mapping[str, float]) -> dict[tuple[str, ...], dict[int, float]]:
    """For each node above a category: how much weight lies below it, by depth."""
    below: dict[tuple[str, ...], dict[int, float]] = {}
    for path, count in counts.items():
        parts = _parts(path)
        for above in _prefixes(parts):
            depths = below.setdefault(above, {})
            depths[len(parts)] = depths.get(len(parts), 0) + count
    return below


def _closeness(path: tuple[str, ...], below: Mapping[tuple[str, ...], Mapping[int, float]]) -> float:
    """Sum weight times (1 - distance) over all categories, grouped by the level up to which they agree."""
    if not path:
        return below[()][0]  # the root is at distance 0 from itself and 1 from all else
    total = 0.0
    for level, here in enumerate(_prefixes(path)[1:], start=1):
        nearer = below[path[: level + 1]] if level < len(path) else {}
        for depth, weight in below[here].items():
            total += (weight - nearer.get(depth, 0)) * level / (len(path) + depth - level)
    return total

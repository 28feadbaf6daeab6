"""Naive twins of the grouping kernels: sets of ancestors, fractions, and lists searched anew each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

User = dict[int, int]
Distance = Callable[[int, int], Fraction]


def generalisations(parent: Sequence[int], category: int) -> set[int]:
    """T(c): the category and all above it; the root is none (thesis 003, example 2)."""
    found = set()
    while category > 0:
        found.add(category)
        category = parent[category]
    return found


def delta(parent: Sequence[int], a: int, b: int) -> Fraction:
    """Equation 5.10."""
    first, second = generalisations(parent, a), generalisations(parent, b)
    if not first | second:
        return Fraction(0)
    return Fraction(len(first | second) - len(first & second), len(first | second))


def user_distance(parent: Sequence[int], a: User, b: User) -> Fraction:
    """Equation 5.13; a user without categories is at 1 from all who have some."""
    total = sum(a.values()) + sum(b.values())
    if not total:
        return Fraction(0)
    forth = sum((w * nearest(parent, c, b) for c, w in a.items()), Fraction(0))
    back = sum((w * nearest(parent, c, a) for c, w in b.items()), Fraction(0))
    return (forth + back) / total


def nearest(parent: Sequence[int], category: int, user: User) -> Fraction:
    """The minimum of equation 5.11."""
    return min((delta(parent, category, other) for other in user), default=Fraction(1))


def mdav(members: Sequence[int], k: int, rank: Sequence[int], apart: Distance) -> list[set[int]]:
    """Algorithm 1 with the centroid of equation 5.14; of equals the one of the lowest rank."""
    left, clusters = set(members), []

    def centre() -> Callable[[int], Fraction]:
        medoid = min(left, key=lambda x: (sum(apart(x, y) for y in left), rank[x]))
        return lambda x: apart(medoid, x)

    def most_distant(distance: Callable[[int], Fraction]) -> int:
        return min(left, key=lambda x: (-distance(x), rank[x]))

    def form(first: int) -> None:
        others = sorted(left - {first}, key=lambda x: (apart(first, x), rank[x]))
        clusters.append({first, *others[: k - 1]})
        left.difference_update(clusters[-1])

    while len(left) >= 3 * k:
        x_r = most_distant(centre())
        form(x_r)
        x_s = most_distant(lambda x, x_r=x_r: apart(x_r, x))  # type: ignore[misc]
        form(x_s)
    if len(left) >= 2 * k:
        form(most_distant(centre()))
    return [*clusters, left]

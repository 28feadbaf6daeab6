"""Paper 003's measures as printed (and corrected), slowly: loops over all pairs, formulas as they stand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

from querycloak.text import user_distance
from tests.reference.naive_overlap import overlap

History = Sequence[Hashable]
Matrix = Sequence[Sequence[float]]


def entropy(things: History) -> float:
    shares = [count / len(things) for count in Counter(things).values()]
    return -sum(p * math.log2(p) for p in shares)


def given(x: Hashable, y: Hashable, asked: Counter[Hashable], shown: Counter[Hashable]) -> float:
    """P(X = x / Y = y), section 4.5.1, case by case."""
    prior = asked[x] / asked.total()
    if y not in asked:
        return prior
    if shown[y] <= asked[y]:
        return 1.0 if x == y else 0.0
    unknown = (shown[y] - asked[y]) / shown[y] * prior
    return asked[y] / shown[y] + unknown if x == y else unknown


def profile_exposure(original: History, released: History) -> float:
    asked, shown = Counter(original), Counter(released)
    if len(asked) < 2:
        return math.nan
    told = 0.0
    for y in shown:
        for x in asked:
            p = given(x, y, asked, shown)
            if p > 0:
                told += p * shown[y] / shown.total() * math.log2(p / (asked[x] / asked.total()))
    return 100 * told / entropy(original)


def information_loss_ratio(original: History, released: History) -> float:
    if len(set(original)) < 2:
        return math.nan
    return 100 * abs(entropy(original) - entropy(released)) / entropy(original)


def semantic_remain(original: Sequence[str], released: Sequence[str], level: int) -> float:
    before, after = (
        [path.split("/")[:level] for path in side if path.count("/") + 1 >= level]
        for side in (original, released)
    )
    return overlap(before, after) / len(before) if before else math.nan


def partition_distance(a: History, b: History) -> float:
    """Equation 5.17 as in its source: I(A/B) + I(B/A) over I(A ∩ B)."""
    together = entropy(list(zip(a, b, strict=True)))
    unlike = conditional(a, b) + conditional(b, a)
    return unlike / together if together else 0.0


def conditional(a: History, b: History) -> float:
    """What is left to know about a's groups for those who know b's."""
    groups = {group: [x for x, y in zip(a, b, strict=True) if y == group] for group in set(b)}
    return sum(len(own) / len(a) * entropy(own) for own in groups.values())


def pairs(a: History, b: History) -> Counter[tuple[bool, bool]]:
    """Count the pairs of users by whether they are together in a and in b."""
    return Counter((a[i] == a[j], b[i] == b[j]) for i, j in combinations(range(len(a)), 2))


def distances(histories: Sequence[Mapping[str, float]]) -> list[list[float]]:
    return [[user_distance(one, other) for other in histories] for one in histories]


def spread(group: Sequence[int], apart: Matrix) -> float:
    """Half the mean squared distance within a group, times its size."""
    return sum(apart[i][j] ** 2 for i in group for j in group) / (2 * len(group))


def ward(apart: Matrix, clusters: int) -> list[tuple[int, ...]]:
    """Merge whatever adds the least spread, until so many groups are left."""
    groups = [(user,) for user in range(len(apart))]
    while len(groups) > clusters:
        one, other = min(combinations(groups, 2), key=lambda two: added(*two, apart))
        groups = [group for group in groups if group not in (one, other)] + [one + other]
    return groups


def added(one: tuple[int, ...], other: tuple[int, ...], apart: Matrix) -> float:
    return spread(one + other, apart) - spread(one, apart) - spread(other, apart)


def calinski_harabasz(groups: Sequence[Sequence[int]], apart: Matrix) -> float:
    users, within = len(apart), sum(spread(group, apart) for group in groups)
    between = spread(range(users), apart) - within
    return (between / (len(groups) - 1)) / (within / (users - len(groups)))


def k_means(points: Sequence[Sequence[float]], starts: Sequence[int], rounds: int = 100) -> list[int]:
    """Lloyd's, with coordinates; a group that became empty is gone."""
    centres = {place: points[start] for place, start in enumerate(starts)}
    labels: list[int] = []
    for _ in range(rounds):
        moved = [min(centres, key=lambda place: math.dist(point, centres[place])) for point in points]
        if moved == labels:
            break
        labels = moved
        own = {
            c: [p for p, label in zip(points, labels, strict=True) if label == c] for c in sorted(set(labels))
        }
        centres = {
            c: [sum(axis) / len(group) for axis in zip(*group, strict=True)] for c, group in own.items()
        }
    return labels

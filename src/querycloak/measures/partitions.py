"""Groups of users with similar interests, before and after: partitions, their clustering, and their distance.

Clustering needs no coordinates. A group's spread is half the mean of its squared distances times its size,
which is the sum of squares around the mean wherever there is a mean.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from querycloak.dictionary import ancestors
from querycloak.errors import NotApplicable
from querycloak.log import Flags, FloatArray, IntArray
from querycloak.measures.base import Kind, LogPair, Measure, Unit
from querycloak.measures.histories import Histories, drawn

Labels = Sequence[Hashable]

#: Clusterings of fewer than this many users each, on average, are not tried: the index soars towards copies.
FEWEST_EACH = 10
#: Squared distances below this are those of copies.
NOTHING = 1e-12
#: Cells of a table of people and categories that are worked on together.
ROOM = 1 << 22
#: Of more people than this, so many are drawn: the work grows with their square.
MOST_CLUSTERED: Final = 2000
#: Numbers of groups that k-means is asked for.
GROUPS: Final = (10, 100)
#: The number of groups that paper 003 compares.
PAPER_003: Final = 80


def partition_distance(a: Labels, b: Labels) -> float:
    """Return the distance of two labelings of the same users: 0 for the same groups, at most 1.

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
    """Return the share of the pairs of users on which two labelings agree: together in both, or in neither.

    1 for the same groups, also where there is no pair; `nan` for no users.

    >>> rand_index([1, 1, 2, 2], ["x", "x", "x", "y"])
    0.5
    """
    both, only_a, only_b, neither = _pairs(a, b)
    return _share(both + neither, both + only_a + only_b + neither, users=len(a))


def jaccard_index(a: Labels, b: Labels) -> float:
    """Return the share of the pairs of users together in either labeling that are together in both.

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
    both, in_a, in_b = (
        sum(math.comb(size, 2) for size in Counter(groups).values())
        for groups in (zip(a, b, strict=True), a, b)
    )
    return both, in_a - both, in_b - both, math.comb(len(a), 2) - in_a - in_b + both


def _share(part: int, whole: int, users: int) -> float:
    if not users:
        return float("nan")
    return part / whole if whole else 1.0


class PartitionLoss(Measure):
    """How unlike the groups of people with alike interests are in both logs: IL of paper 003.

    `loss` is for the number of groups that the original's Calinski–Harabasz index chooses (`clusters`),
    `loss_80` for the paper's number, and each `by_chance` is what groups that have nothing to do with each
    other lose; `rand` and `jaccard` compare what k-means finds. Of more than 2,000 people, 2,000 are drawn,
    always the same ones; `people` says how many were clustered.
    """

    name = "partition_loss"
    help = (
        "percent by which groups of people with alike categories differ (Ward, Calinski–Harabasz), and Rand "
        "and Jaccard indices of k-means with 10 and 100 groups; of at most 2,000 people, drawn"
    )
    unit, kind = Unit.PERCENT, Kind.LOSS
    headline = "loss"

    def __call__(self, pair: LogPair) -> dict[str, Any]:
        """Cluster the people of the original by what they asked, and again by what was released."""
        histories = Histories.of(pair, "category")
        people = drawn(histories.searchers(), MOST_CLUSTERED)
        if people.size < 3:
            raise NotApplicable("there are fewer than three people with categories to cluster")
        sides = (histories.asked, histories.shown)
        before, after = (distances_of(*_table(histories, count, people)) for count in sides)
        return compare(before, after)


def _table(histories: Histories, count: IntArray, people: IntArray) -> tuple[FloatArray, list[str]]:
    """Spread one side's counts of these people into a table, and name its columns: what any of them has."""
    known = np.flatnonzero(np.isin(histories.person, people) & (count > 0))
    used, column = np.unique(histories.thing[known], return_inverse=True)
    table = np.zeros((people.size, used.size))
    table[np.searchsorted(people, histories.person[known]), column] = count[known]
    return table, histories.things[used].to_list()


def compare(before: FloatArray, after: FloatArray) -> dict[str, Any]:
    """Return every figure from two matrices of distances between the same people, by any distance."""
    people = before.shape[0]
    trees = ward(before), ward(after)
    number = trees[0].best_number()
    found: dict[str, Any] = {"loss": loss_between(*trees, number)}
    found |= {"loss_by_chance": loss_between(*trees, number, by_chance=True), "clusters": number}
    if people > PAPER_003:
        found["loss_80"] = loss_between(*trees, PAPER_003)
        found["loss_80_by_chance"] = loss_between(*trees, PAPER_003, by_chance=True)
    for groups in (groups for groups in GROUPS if groups < people):
        starts = starts_of(before, groups)
        sides = [k_means(side, starts).tolist() for side in (before, after)]
        found |= {f"rand_{groups}": rand_index(*sides), f"jaccard_{groups}": jaccard_index(*sides)}
    return found | {"people": people}


def loss_between(before: Hierarchy, after: Hierarchy, clusters: int, *, by_chance: bool = False) -> float:
    """Compare two hierarchies of the same users, both cut into so many groups, or shuffled users."""
    first, second = (side.labels(clusters) for side in (before, after))
    second = np.random.default_rng(0).permutation(second) if by_chance else second
    return 100.0 * partition_distance(first.tolist(), second.tolist())


@dataclass(frozen=True)
class Hierarchy:
    """Merges, the nearest first: two members of the groups that join, and how much spread that adds."""

    users: int
    pairs: IntArray
    added: FloatArray

    def labels(self, clusters: int) -> IntArray:
        """Cut into so many groups, or as many as there are different users; number them as they are met."""
        parent = list(range(self.users))
        different = 1 + int(np.count_nonzero(self.added > NOTHING))
        for a, b in self.pairs[: self.users - min(clusters, different)].tolist():
            parent[_root(parent, a)] = _root(parent, b)
        return _numbered([_root(parent, user) for user in range(self.users)])

    def calinski_harabasz(self) -> FloatArray:
        """Return the index for 2, 3, … groups: spread between over spread within, each by its freedom."""
        within = np.cumsum(self.added)[::-1][1:]  # of 2 groups, of 3, …
        between = self.added.sum() - within
        clusters = np.arange(2, self.users)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((between / (clusters - 1)) / (within / (self.users - clusters)))

    def best_number(self) -> int:
        """Choose the number of groups with the largest index, among those of ten users on average or more."""
        tried = self.calinski_harabasz()[: max(1, self.users // FEWEST_EACH - 1)]
        return 2 + int(np.argmax(np.nan_to_num(tried, nan=-np.inf))) if tried.size else min(2, self.users)


def _root(parent: list[int], user: int) -> int:
    while parent[user] != user:
        parent[user] = parent[parent[user]]
        user = parent[user]
    return user


def _numbered(groups: Sequence[int]) -> IntArray:
    known: dict[int, int] = {}
    return np.array([known.setdefault(group, len(known)) for group in groups], np.int64)


def ward(distances: FloatArray) -> Hierarchy:
    """Join groups so that the spread within them grows least: Ward's method, by nearest-neighbour chains."""
    apart = np.array(distances, np.float64) ** 2
    users = apart.shape[0]
    np.fill_diagonal(apart, np.inf)
    sizes, alive, chain = np.ones(users), np.ones(users, np.bool_), list[int]()
    pairs, added = np.empty((max(users - 1, 0), 2), np.int64), np.empty(max(users - 1, 0))
    for merge in range(users - 1):
        a, b = _next_pair(apart, alive, chain)
        pairs[merge], added[merge] = (a, b), apart[a, b] / 2
        _join(apart, sizes, a, b)
        alive[b] = False
    order = np.argsort(added, kind="stable")
    return Hierarchy(users, pairs[order], added[order])


def _next_pair(apart: FloatArray, alive: Flags, chain: list[int]) -> tuple[int, int]:
    """Follow nearest neighbours until two are each other's; they leave the chain."""
    if not chain:
        chain.append(int(np.argmax(alive)))
    while True:
        row = apart[chain[-1]]
        nearest = int(np.argmin(row))
        if len(chain) > 1 and row[chain[-2]] <= row[nearest]:
            a, b = sorted((chain.pop(), chain.pop()))
            return a, b
        chain.append(nearest)


def _join(apart: FloatArray, sizes: FloatArray, a: int, b: int) -> None:
    """Merge b into a; twice the spread that a later merge would add follows from the old ones."""
    total = sizes[a] + sizes[b] + sizes
    both = (sizes[a] + sizes) * apart[a] + (sizes[b] + sizes) * apart[b] - sizes * apart[a, b]
    joined = both / total
    joined[a] = np.inf
    apart[a], apart[:, a] = joined, joined
    apart[b], apart[:, b] = np.inf, np.inf
    sizes[a] += sizes[b]


def starts_of(distances: FloatArray, clusters: int, seed: int = 0) -> IntArray:
    """Draw users to start k-means from, far ones more likely: by the squared distance to those drawn."""
    draws = np.random.default_rng(seed)
    chosen = [int(draws.integers(distances.shape[0]))]
    nearest = distances[chosen[0]] ** 2
    while len(chosen) < clusters and nearest.max() > NOTHING:
        chosen.append(int(draws.choice(nearest.size, p=nearest / nearest.sum())))
        nearest = np.minimum(nearest, distances[chosen[-1]] ** 2)
    return np.array(chosen, np.int64)


def k_means(distances: FloatArray, starts: IntArray, rounds: int = 100) -> IntArray:
    """Return groups of users by the nearest mean; groups start as one user each."""
    squared = np.asarray(distances, np.float64) ** 2
    labels: IntArray = np.argmin(squared[:, starts], axis=1)
    for _ in range(rounds):
        moved = np.argmin(_to_means(squared, labels, starts.size), axis=1)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return labels


def _to_means(squared: FloatArray, labels: IntArray, clusters: int) -> FloatArray:
    """Return each user's squared distance to each group's mean; infinite for a group that became empty."""
    member = np.zeros((labels.size, clusters))
    member[np.arange(labels.size), labels] = 1
    sizes = member.sum(axis=0)
    share = member / np.maximum(sizes, 1)
    to_members = squared @ share
    found = to_members - (share * to_members).sum(axis=0) / 2
    return np.asarray(np.where(sizes > 0, found, np.inf))


def distances_of(counts: FloatArray, paths: Sequence[str]) -> FloatArray:
    """Return the matrix of the distances of users, from a table of users and paths (paper 003, eq. 5.13)."""
    people, total = counts.shape[0], counts.sum(axis=1)
    above, depth = ancestors(paths)
    one_way = np.empty((people, people))
    step = max(1, ROOM // max(len(paths), 1))
    for start in range(0, people, step):
        few = slice(start, start + step)
        one_way[:, few] = counts @ _to_nearest(counts[few] > 0, above.T, depth).T
    both = total[:, None] + total
    found = np.where(both > 0, (one_way + one_way.T) / np.where(both > 0, both, 1.0), 0.0)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _to_nearest(has: Flags, node: IntArray, depth: IntArray) -> FloatArray:
    """Return the distance of each path to the nearest that a person has; 1 where no level is shared.

    Of the paths below one node the least deep is the nearest, see `querycloak.text.distance`.
    """
    near = np.zeros(has.shape)
    least = np.full((has.shape[0], int(node.max(initial=-1)) + 1), np.inf)
    who, path = np.nonzero(has)
    for above in node:
        reached = above[path] >= 0
        np.minimum.at(least, (who[reached], above[path[reached]]), depth[path[reached]])
    for level, above in enumerate(node, start=1):
        reached = np.flatnonzero(above >= 0)
        shared = level / (depth[reached] + least[:, above[reached]] - level)
        near[:, reached] = np.maximum(near[:, reached], shared)
    near[has] = 1.0
    return 1.0 - near

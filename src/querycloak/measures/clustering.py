"""Groups of users by how far they lie apart: Ward's hierarchy, and k-means, from a matrix of distances.

Neither asks for coordinates. A group's spread is half the mean of its squared distances times its size, which
is the sum of squares around the mean wherever there is a mean, and is taken as it is wherever there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Item = TypeVar("Item")

#: Clusterings of fewer than this many users each, on average, are not tried: the index soars towards copies.
FEWEST_EACH = 10
#: Squared distances below this are those of copies.
NOTHING = 1e-12


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
        """Give the index for 2, 3, … groups: spread between them over spread within, each by its freedom."""
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


def _next_pair(apart: FloatArray, alive: npt.NDArray[np.bool_], chain: list[int]) -> tuple[int, int]:
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
    """Let a stand for both; twice the spread that a later merge would add follows from the old ones."""
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
    """Put users into the group whose mean is nearest, until nobody moves; groups start as one user each."""
    squared = np.asarray(distances, np.float64) ** 2
    labels: IntArray = np.argmin(squared[:, starts], axis=1)
    for _ in range(rounds):
        moved = np.argmin(_to_means(squared, labels, starts.size), axis=1)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return labels


def _to_means(squared: FloatArray, labels: IntArray, clusters: int) -> FloatArray:
    """Give each user's squared distance to each group's mean; infinite for a group that became empty."""
    member = np.zeros((labels.size, clusters))
    member[np.arange(labels.size), labels] = 1
    sizes = member.sum(axis=0)
    share = member / np.maximum(sizes, 1)
    to_members = squared @ share
    found = to_members - (share * to_members).sum(axis=0) / 2
    return np.asarray(np.where(sizes > 0, found, np.inf))


def k_means_by(
    items: Sequence[Item],
    starts: IntArray,
    distances: Callable[[Sequence[Item], list[Any]], FloatArray],
    aggregate: Callable[[list[Item]], Any],
    rounds: int = 20,
) -> IntArray:
    """Do the same with a distance and an aggregation of one's own, as paper 003 does in section 5.3.2.4.

    `distances(items, centres)` gives a row for each centre, with how far all items are from it, and
    `aggregate` makes a group's centre.
    """
    centres: dict[int, Any] = {place: items[start] for place, start in enumerate(starts.tolist())}
    labels = np.full(len(items), -1, np.int64)
    for _ in range(rounds):
        names = np.array(list(centres), np.int64)
        nearest = np.argmin(distances(items, list(centres.values())), axis=0)
        if np.array_equal(names[nearest], labels):
            break
        labels = names[nearest]
        groups = {place: np.flatnonzero(labels == place).tolist() for place in sorted(set(labels.tolist()))}
        centres = {place: aggregate([items[i] for i in group]) for place, group in groups.items()}
    return labels

"""The distance of users' released profiles from the original ones: categories, and how often each occurs.

In the kernels, users and categories are numbers from 0. Records come grouped by user, so that one scratch
array of the size of the tree serves all users, and a record costs one step for each level of its path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from querycloak.dictionary import Dictionary, ancestors
from querycloak.errors import NotApplicable
from querycloak.kernels.order import group
from querycloak.log import FloatArray, IntArray
from querycloak.measures.base import Kind, LogPair, Measure, Unit
from querycloak.measures.counts import largest_tree_emd

#: The value of a user without one of the two profiles.
UNKNOWN = np.nan


def summary(distance: FloatArray, topics: FloatArray, largest: float, without: int) -> dict[str, float]:
    """Return the figures over all users; `without` counts those who have no released profile.

    Such a user has lost the whole profile: loss and divergence count as 1. `distance` is the mean over the
    others, who have both profiles.
    """
    if not distance.size:
        none = float("nan")
        empty = dict.fromkeys(("distance", "loss", "loss_median", "loss_p90", "loss_worst", "topics"), none)
        return empty | {"largest_distance": largest, "people": 0, "people_without_profile": without}
    lost = np.ones(without)
    share = np.concatenate([distance / largest if largest else np.zeros_like(distance), lost])
    return {
        "distance": float(distance.mean()),
        "loss": float(share.mean()),
        "loss_median": float(np.median(share)),
        "loss_p90": float(np.quantile(share, 0.9)),
        "loss_worst": float(share.max()),
        "topics": float(np.concatenate([topics, lost]).mean()),
        "largest_distance": largest,
        "people": int(distance.size),
        "people_without_profile": without,
    }


@dataclass(frozen=True)
class Tree:
    """A tree of category paths as numbers: each path's node, each node's parent (-1: none) and topic."""

    node: IntArray
    parent: IntArray
    topic: IntArray
    topics: int
    largest: float

    @classmethod
    def of(cls, paths: Sequence[str]) -> Tree:
        """Number these paths and all that lies above them."""
        above, depth = ancestors(paths)
        parent = np.full(int(above.max(initial=-1)) + 1, -1, np.int64)
        below = above[:, 1:] >= 0
        parent[above[:, 1:][below]] = above[:, :-1][below]
        tops, top = np.unique(above[:, 0], return_inverse=True)
        topic = np.empty_like(parent)
        topic[above[above >= 0]] = np.repeat(top, depth)
        node = above[np.arange(depth.size), depth - 1]
        return cls(node, parent, topic, tops.size, largest_tree_emd(paths))


@dataclass(frozen=True)
class Records:
    """Whose each record is and which path it has, as numbers; -1 where there is none."""

    person: IntArray
    path: IntArray


def losses(tree: Tree, people: int, before: Records, after: Records) -> tuple[FloatArray, FloatArray]:
    """Return each person's distance on the tree and divergence of topics; NaN where a profile is missing."""
    sides = []
    for side in (before, after):
        node = np.where(side.path >= 0, tree.node[side.path], -1) if tree.node.size else side.path
        sides.append(grouped(side.person, node, people))
    distance = tree_distances(tree.parent, *sides[0], *sides[1])
    topics = [(tree.topic[nodes], starts) for nodes, starts in sides]
    return distance, divergences(tree.topics, *topics[0], *topics[1])


def loss_of_records(tree: Tree, people: int, before: Records, after: Records) -> dict[str, float]:
    """Return the figures of `profile_loss` from records."""
    distance, topics = losses(tree, people, before, after)
    asked = np.zeros(people, np.bool_)
    asked[before.person[(before.person >= 0) & (before.path >= 0)]] = True
    known = ~np.isnan(distance)
    return summary(distance[known], topics[known], tree.largest, int(np.count_nonzero(asked & ~known)))


class ProfileLoss(Measure):
    """The distance of users' released profiles of categories from the original ones.

    A user without a released profile counts as lost: 1 in `loss` and `topics`.
    """

    name = "profile_loss"
    help = (
        "people's profiles: exact earth mover's distance as a share of the largest, and divergence of topics"
    )
    unit, kind = Unit.SHARE, Kind.LOSS
    headline = "loss"

    def __call__(self, pair: LogPair) -> dict[str, float]:
        """Compare what people asked about with what was released under their labels."""
        pair.both("category"), pair.both("user")
        people, paths = Dictionary(), Dictionary()
        sides = [
            Records(people.encode(user), paths.encode(frame["category"]))
            for frame, user in ((pair.original, pair.original["user"]), (pair.released, pair.label_owner()))
        ]
        tree = Tree.of(paths.texts().to_list())
        found = loss_of_records(tree, len(people.texts()), *sides)
        if not found["people"]:
            raise NotApplicable(
                "no label of the release is a user of the original; fresh ones need the truth"
            )
        return found


def grouped(person: IntArray, value: IntArray, people: int) -> tuple[IntArray, IntArray]:
    """Return values ordered by user, and where each user starts. Records without one of both are left out."""
    known = np.flatnonzero((person >= 0) & (value >= 0))
    order, starts = group(person[known], people)
    return value[known[order]], starts


@njit(cache=True, nogil=True)
def _add_path(node, weight, parent, mass, met, touched, size):  # type: ignore[no-untyped-def]
    """Add mass to a node and its ancestors; record the nodes seen for the first time."""
    while node >= 0:
        if not met[node]:
            met[node] = True
            touched[size] = node
            size += 1
        mass[node] += weight
        node = parent[node]
    return size


@njit(cache=True, nogil=True)
def tree_distances(parent, before, before_starts, after, after_starts):  # type: ignore[no-untyped-def]
    """Return each user's exact earth mover's distance on the tree between two profiles.

    Masses are whole numbers, counts times the other profile's size, so that equal profiles are exactly 0
    apart. `parent` is -1 above level 1. A user without one of the profiles gets `UNKNOWN`.
    """
    people = before_starts.size - 1
    distance = np.full(people, UNKNOWN)
    mass, met = np.zeros(parent.size, np.int64), np.zeros(parent.size, np.bool_)
    touched = np.empty(parent.size, np.int64)
    for p in range(people):
        first, second = before_starts[p + 1] - before_starts[p], after_starts[p + 1] - after_starts[p]
        if first == 0 or second == 0:
            continue
        size = 0
        for i in range(before_starts[p], before_starts[p + 1]):
            size = _add_path(before[i], second, parent, mass, met, touched, size)
        for i in range(after_starts[p], after_starts[p + 1]):
            size = _add_path(after[i], -first, parent, mass, met, touched, size)
        moved = 0.0
        for t in range(size):
            node = touched[t]
            moved += abs(mass[node])
            mass[node], met[node] = 0, False
        distance[p] = moved / (first * second)
    return distance


@njit(inline="always")
def _towards_middle(a, b):  # type: ignore[no-untyped-def]
    return a * np.log2(2 * a / (a + b)) if a > 0 else 0.0


@njit(cache=True, nogil=True)
def divergences(values, before, before_starts, after, after_starts):  # type: ignore[no-untyped-def]
    """Return each user's Jensen-Shannon divergence (base 2, 0 to 1) between two profiles."""
    people = before_starts.size - 1
    found = np.full(people, UNKNOWN)
    counts = np.zeros((values, 2), np.int64)
    for p in range(people):
        first, second = before_starts[p + 1] - before_starts[p], after_starts[p + 1] - after_starts[p]
        if first == 0 or second == 0:
            continue
        counts[:] = 0
        for i in range(before_starts[p], before_starts[p + 1]):
            counts[before[i], 0] += 1
        for i in range(after_starts[p], after_starts[p + 1]):
            counts[after[i], 1] += 1
        total = 0.0
        for v in range(values):
            a, b = counts[v, 0] / first, counts[v, 1] / second
            total += _towards_middle(a, b) + _towards_middle(b, a)
        found[p] = min(1.0, max(0.0, total / 2))
    return found

"""What a release does to people's profiles: the categories that each one asked about, and how often."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.measures.distributions import jensen_shannon, largest_tree_emd, tree_emd

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
#: One person's profile: how often each category path occurs.
Profile = Mapping[str, float]


def profile_loss(
    original: Mapping[Any, Profile], released: Mapping[Any, Profile], largest: float | None = None
) -> dict[str, float]:
    """Say how far people's released profiles lie from their original ones.

    `loss` is the exact earth mover's distance on the tree of categories over the largest possible one,
    `topics` the Jensen-Shannon divergence (0 to 1) of the profiles cut to level 1; both are means over the
    people who have both profiles. `largest` is the tree's diameter, by default that of the paths given.

    >>> profile_loss({"u": {"Arts/Music": 2}}, {"u": {"Arts/Film": 1}, "v": {"Arts": 1}})["distance"]
    2.0
    """
    both = [person for person, profile in original.items() if profile and released.get(person)]
    if largest is None:
        largest = largest_tree_emd([p for side in (original, released) for own in side.values() for p in own])
    distances = [tree_emd(original[person], released[person]) for person in both]
    topics = [_topic_divergence(original[person], released[person]) for person in both]
    asked = [person for person, profile in original.items() if profile]
    return summary(np.array(distances), np.array(topics), largest, len(asked) - len(both))


def _topic_divergence(before: Profile, after: Profile) -> float:
    topics: dict[Hashable, list[float]] = {}
    for side, profile in enumerate((before, after)):
        for path, count in profile.items():
            topics.setdefault(path.partition("/")[0], [0.0, 0.0])[side] += count
    first, second = zip(*topics.values(), strict=True)
    return jensen_shannon(first, second)


def summary(distance: FloatArray, topics: FloatArray, largest: float, without: int) -> dict[str, float]:
    """Put the figures of many people together; `without` counts those who have no released profile."""
    if not distance.size:
        none = float("nan")
        empty = dict.fromkeys(("distance", "loss", "loss_median", "loss_p90", "loss_worst", "topics"), none)
        return empty | {"largest_distance": largest, "people": 0, "people_without_profile": without}
    share = distance / largest if largest else np.zeros_like(distance)
    return {
        "distance": float(distance.mean()),
        "loss": float(share.mean()),
        "loss_median": float(np.median(share)),
        "loss_p90": float(np.quantile(share, 0.9)),
        "loss_worst": float(share.max()),
        "topics": float(topics.mean()),
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
        numbers: dict[str, int] = {}
        parent: list[int] = []
        node = [_number(path, numbers, parent) for path in paths]
        tops = {number: place for place, number in enumerate(n for n, p in enumerate(parent) if p < 0)}
        topic = [0] * len(parent)
        for number, above in enumerate(parent):  # parents are numbered before their children
            topic[number] = tops[number] if above < 0 else topic[above]
        node_, parent_, topic_ = (np.array(part, np.int64) for part in (node, parent, topic))
        return cls(node_, parent_, topic_, topics=len(tops), largest=largest_tree_emd(paths))


def _number(path: str, numbers: dict[str, int], parent: list[int]) -> int:
    """Give a path's number, numbering what lies above it first."""
    known = numbers.get(path)
    if known is None:
        above = path.rpartition("/")[0]
        over = _number(above, numbers, parent) if above else -1
        known = numbers[path] = len(parent)
        parent.append(over)
    return known


@dataclass(frozen=True)
class Records:
    """Whose each record is and which path it has, as numbers; -1 where there is none."""

    person: IntArray
    path: IntArray


def losses(tree: Tree, people: int, before: Records, after: Records) -> tuple[FloatArray, FloatArray]:
    """Give each person's distance on the tree and divergence of topics; NaN where a profile is missing."""
    from querycloak.kernels import profiles as kernel

    sides = []
    for side in (before, after):
        node = np.where(side.path >= 0, tree.node[side.path], -1) if tree.node.size else side.path
        sides.append(kernel.grouped(side.person, node, people))
    distance = kernel.tree_distances(tree.parent, *sides[0], *sides[1])
    topics = [(tree.topic[nodes], starts) for nodes, starts in sides]
    return distance, kernel.divergences(tree.topics, *topics[0], *topics[1])


def loss_of_records(tree: Tree, people: int, before: Records, after: Records) -> dict[str, float]:
    """Do the same as `profile_loss` from records, for logs of any size."""
    distance, topics = losses(tree, people, before, after)
    asked = np.zeros(people, np.bool_)
    asked[before.person[(before.person >= 0) & (before.path >= 0)]] = True
    known = ~np.isnan(distance)
    return summary(distance[known], topics[known], tree.largest, int(np.count_nonzero(asked & ~known)))

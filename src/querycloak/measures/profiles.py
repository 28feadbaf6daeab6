"""The distance of users' released profiles from the original ones: categories, and how often each occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from querycloak.dictionary import Dictionary
from querycloak.errors import NotApplicable
from querycloak.measures import profile_kernel as kernel
from querycloak.measures.base import Kind, LogPair, Measure, Unit
from querycloak.measures.distributions import largest_tree_emd

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


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
    """Return a path's number, numbering what lies above it first."""
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
    """Return each person's distance on the tree and divergence of topics; NaN where a profile is missing."""
    sides = []
    for side in (before, after):
        node = np.where(side.path >= 0, tree.node[side.path], -1) if tree.node.size else side.path
        sides.append(kernel.grouped(side.person, node, people))
    distance = kernel.tree_distances(tree.parent, *sides[0], *sides[1])
    topics = [(tree.topic[nodes], starts) for nodes, starts in sides]
    return distance, kernel.divergences(tree.topics, *topics[0], *topics[1])


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

    name, help = (
        "profile_loss",
        "people's profiles: exact earth mover's distance as a share of the largest, and divergence of topics",
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

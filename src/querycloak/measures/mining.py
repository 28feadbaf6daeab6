"""What a release costs those who look for groups of alike users: information loss as in paper 003."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.measures import clustering
from querycloak.measures.interests import distances_of, user_distances
from querycloak.measures.on_logs import LogMeasure, NotApplicable, Pair
from querycloak.measures.partitions import jaccard_index, partition_distance, rand_index
from querycloak.measures.people import Counts, Histories, drawn

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
History = Mapping[str, float]

#: Of more people than this, so many are drawn: the work grows with their square.
MOST_CLUSTERED: Final = 2000
#: Numbers of groups that k-means is asked for.
GROUPS: Final = (10, 100)
#: The number of groups that paper 003 compares.
PAPER_003: Final = 80


def partition_loss(
    original: Sequence[History], released: Sequence[History], clusters: int | None = None
) -> float:
    """Give in percent how unlike the groups of alike users are before and after: IL of paper 003.

    The i-th released history belongs to the i-th original; a history is `{category path: count}`. Users
    are clustered by `querycloak.topics.user_distance` with Ward's method, and the two partitions are compared
    by `partition_distance`. Without `clusters`, their number is the one with the largest Calinski–Harabasz
    index in the original, among those of at least ten users each on average.

    >>> music, games = {"Arts/Music": 2}, {"Games/Chess": 1}
    >>> partition_loss([music, music, games, games], [music, games, music, games], clusters=2)
    100.0
    """
    if len(original) != len(released):
        raise ValueError(f"the lists must be equally long; got {len(original)} and {len(released)}")
    if clusters is not None and clusters < 1:
        raise ValueError("clusters must be at least 1")
    if not original:
        return float("nan")
    before, after = (clustering.ward(user_distances(side)) for side in (original, released))
    return loss_between(before, after, clusters or before.best_number())


def loss_between(before: clustering.Hierarchy, after: clustering.Hierarchy, clusters: int) -> float:
    """Compare two hierarchies of the same users, both cut into so many groups."""
    first, second = (side.labels(clusters).tolist() for side in (before, after))
    return 100.0 * partition_distance(first, second)


class PartitionLoss(LogMeasure):
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

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Cluster the people of the original by what they asked, and again by what was released."""
        histories = Histories.of(pair, "category")
        people = drawn(np.unique(histories.before.person), MOST_CLUSTERED)
        if people.size < 3:
            raise NotApplicable("there are fewer than three people with categories to cluster")
        before, after = (
            distances_of(*_table(side, people, histories.things))
            for side in (histories.before, histories.after)
        )
        return compare(before, after)


def _table(counts: Counts, people: IntArray, things: pl.Series) -> tuple[FloatArray, list[str]]:
    """Spread the counts of these people into a table, and name its columns: what any of them has."""
    place = np.minimum(np.searchsorted(people, counts.person), people.size - 1)
    known = people[place] == counts.person
    used, column = np.unique(counts.thing[known], return_inverse=True)
    table = np.zeros((people.size, used.size))
    table[place[known], column] = counts.count[known]
    return table, things[used].to_list()


def compare(before: FloatArray, after: FloatArray) -> dict[str, Any]:
    """Give every figure from two matrices of distances between the same people, by any distance."""
    people = before.shape[0]
    trees = clustering.ward(before), clustering.ward(after)
    number = trees[0].best_number()
    found: dict[str, Any] = {"loss": loss_between(*trees, number)}
    found |= {"loss_by_chance": _by_chance(*trees, number), "clusters": number}
    if people > PAPER_003:
        found["loss_80"] = loss_between(*trees, PAPER_003)
        found["loss_80_by_chance"] = _by_chance(*trees, PAPER_003)
    for groups in (groups for groups in GROUPS if groups < people):
        starts = clustering.starts_of(before, groups)
        sides = [clustering.k_means(side, starts).tolist() for side in (before, after)]
        found |= {f"rand_{groups}": rand_index(*sides), f"jaccard_{groups}": jaccard_index(*sides)}
    return found | {"people": people}


def _by_chance(before: clustering.Hierarchy, after: clustering.Hierarchy, clusters: int) -> float:
    """Do the same as `loss_between` once the released users have been shuffled: nothing is left to lose."""
    first, second = (side.labels(clusters) for side in (before, after))
    shuffled = np.random.default_rng(0).permutation(second)
    return 100.0 * partition_distance(first.tolist(), shuffled.tolist())

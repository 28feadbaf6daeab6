"""How much a released history tells about the original one, and how much of its variety is lost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def profile_exposure(original: Sequence[Hashable], released: Sequence[Hashable]) -> float:
    """Give in percent how much of a person's history a released one exposes: PEL of paper 003.

    Both are sequences of queries, or of categories. It is the mutual information that the paper assumes,
    over the original's entropy. A query that is released no more often than it was asked points to itself;
    one that is released more often only in part; one that was never asked tells nothing. The sum is not
    bounded by 100. `nan` when the original has one distinct query or none, 0 when nothing is released.

    >>> round(profile_exposure(["jazz", "oboe"], ["jazz", "jazz"]), 3)
    18.872
    """
    asked, shown = Counter(original), Counter(released)
    whole = entropy(asked.values())
    if not whole:
        return float("nan")
    if not shown:
        return 0.0
    met = [(asked[thing], count) for thing, count in shown.items() if thing in asked]
    theirs, ours = (np.array(side, np.float64) for side in zip(*met, strict=True)) if met else (_NONE, _NONE)
    told = math.fsum(information(theirs, ours, asked.total(), shown.total()).tolist())
    return 100.0 * told / whole


_NONE = np.empty(0, np.float64)


def information(
    asked: FloatArray, shown: FloatArray, all_asked: FloatArray | float, all_shown: FloatArray | float
) -> FloatArray:
    """Give what released things add to the mutual information, for those that the person had asked.

    `asked` and `shown` are a thing's counts, the others the sizes of the two histories. Of the
    paper's p(x|y) only x = y differs from the rest, all of which are in the same proportion to p(x).
    """
    surplus = np.maximum(shown - asked, 0) / shown
    prior = asked / all_asked
    same = (1 - surplus) + surplus * prior
    rest = surplus * (1 - prior)
    log_surplus = np.log2(np.where(surplus > 0, surplus, 1.0))
    return np.asarray(shown / all_shown * (same * np.log2(same / prior) + rest * log_surplus))


def information_loss_ratio(original: Sequence[Hashable], released: Sequence[Hashable]) -> float:
    """Give in percent by how much the entropy of a person's history has changed: ILR of paper 003.

    Only how often things occur counts, not which things they are. More than 100 when a release is more than
    twice as varied; `nan` when the original has one distinct query or none.

    >>> round(information_loss_ratio(["jazz", "oboe", "lute"], ["jazz", "oboe"]), 3)
    36.907
    """
    before, after = (entropy(Counter(side).values()) for side in (original, released))
    return 100.0 * abs(before - after) / before if before else float("nan")


def entropy(counts: Iterable[int]) -> float:
    """Give the entropy in bits of things that occur so often; 0 for one thing or none."""
    known = list(counts)
    total = sum(known)
    return abs(math.fsum(count / total * math.log2(count / total) for count in known))

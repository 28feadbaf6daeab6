"""Mutual information of a history and its release, per distinct query (PEL of paper 003)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def information(
    asked: FloatArray, shown: FloatArray, all_asked: FloatArray | float, all_shown: FloatArray | float
) -> FloatArray:
    """Return what released queries add to the mutual information, for those that the user had searched.

    `asked` and `shown` are the counts of a query, the others the sizes of the two histories. Of the
    paper's p(x|y) only x = y differs from the rest, all of which are in the same proportion to p(x).
    """
    surplus = np.maximum(shown - asked, 0) / shown
    prior = asked / all_asked
    same = (1 - surplus) + surplus * prior
    rest = surplus * (1 - prior)
    log_surplus = np.log2(np.where(surplus > 0, surplus, 1.0))
    return np.asarray(shown / all_shown * (same * np.log2(same / prior) + rest * log_surplus))

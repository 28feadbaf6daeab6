"""Small functions on arrays of numbers.

`distinct` and `among` sort: numpy's own `unique` hashes, and takes five times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from querycloak.log import Flags, FloatArray, IntArray


def distinct(values: IntArray) -> IntArray:
    """Return the different values in their order, as `numpy.unique` does."""
    found = np.sort(values)
    new = np.ones(found.size, bool)
    np.not_equal(found[1:], found[:-1], out=new[1:])
    return found[new]


def among(values: IntArray, some: IntArray) -> Flags:
    """Return which values are among others, as `numpy.isin` does."""
    if not some.size:
        return np.zeros(values.size, bool)
    ordered = np.sort(some)
    place = np.minimum(np.searchsorted(ordered, values), ordered.size - 1)
    return np.asarray(ordered[place] == values)


def ranks_in_groups(sizes: IntArray) -> IntArray:
    """Number the entries of each group from 0; the groups have these sizes and follow one another."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def spans(begin: IntArray, sizes: IntArray) -> IntArray:
    """Return the places `begin, begin + 1, …` of spans of these sizes, one span after the other."""
    return np.repeat(begin, sizes) + ranks_in_groups(sizes)


def grown(array: Any, size: int, fill: int = 0) -> Any:
    """Return an array that has room for `size` entries, doubling so that growth stays cheap."""
    if len(array) >= size:
        return array
    larger = np.full((max(size, 2 * len(array), 64), *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger


def information(
    asked: FloatArray, shown: FloatArray, all_asked: FloatArray | float, all_shown: FloatArray | float
) -> FloatArray:
    """Return what released queries add to the mutual information with a history (PEL of paper 003).

    `asked` and `shown` are the counts of a query, the others the sizes of the two histories. Of the
    paper's p(x|y) only x = y differs from the rest, all of which are in the same proportion to p(x).
    """
    surplus = np.maximum(shown - asked, 0) / shown
    prior = asked / all_asked
    same = (1 - surplus) + surplus * prior
    rest = surplus * (1 - prior)
    log_surplus = np.log2(np.where(surplus > 0, surplus, 1.0))
    return np.asarray(shown / all_shown * (same * np.log2(same / prior) + rest * log_surplus))

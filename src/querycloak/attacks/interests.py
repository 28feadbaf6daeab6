"""What searches are about and at which hours they were made, as rows of weights that can be summed up."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from querycloak.attacks.learned.categories import Categories
from querycloak.attacks.learned.searches import Searches

FloatArray = npt.NDArray[np.float64]

#: How deep topics are compared; the paper's level 2.
_LEVEL: Final = 2
_HOURS: Final = 24


def topics(searches: Searches) -> FloatArray:
    """Give each search one unit of weight, over its categories down to level 2."""
    paths = Categories.of(searches).paths
    names = ["/".join(path.split("/")[:_LEVEL]) for path in paths.names]
    number = {name: n for n, name in enumerate(dict.fromkeys(names))}
    weights = np.zeros((len(searches), len(number)))
    search = np.repeat(np.arange(len(searches)), paths.sizes)
    topic = np.array([number[name] for name in names], np.int64)[paths.bags.item]
    np.add.at(weights, (search, topic), 1.0 / np.repeat(paths.sizes, paths.sizes))
    return weights


def hours(searches: Searches) -> FloatArray:
    """Give each search the hour of its day; none where the time is not known."""
    weights = np.zeros((len(searches), _HOURS))
    if "time" in searches.frame.columns:
        hour = searches.column("time").dt.hour()
        known = hour.is_not_null().to_numpy()
        weights[np.flatnonzero(known), hour.drop_nulls().to_numpy()] = 1.0
    return weights

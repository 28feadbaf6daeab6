"""How `microagg-semantic` compares what people ask: by a tree of categories, or by vectors of words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from querycloak.dictionary import Texts
from querycloak.kernels.candidates import Distances
from querycloak.keys import derive
from querycloak.log import NOTHING, Batch, IntArray

Floats = npt.NDArray[np.float64]
Drop = Callable[[IntArray, str], None]
#: The purpose of the draws that pick queries.
PICK = 1


class Likeness(ABC):
    """What searches mean, as numbered things: how far apart they are, and which queries say them."""

    #: Columns that it has nothing to fill with.
    empties: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, settings: Any, key: bytes, texts: Texts) -> None:
        self.settings = settings
        self.texts = texts
        self._shelf_key, self._pick_key = derive(key, "shelf"), derive(key, "pick")

    def prepare(self) -> None:  # noqa: B027 - the tree comes with the package
        """Say that an optional part is missing, before a long log is read for nothing."""

    @abstractmethod
    def usable(self, held: Batch, drop: Drop) -> Batch:
        """Read a whole log; drop what means nothing, and remember the queries that may be shown."""

    @abstractmethod
    def things(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """Give all things that queries mean, and of which query each is."""

    @abstractmethod
    def people(self, thing: IntArray, start: IntArray) -> Distances:
        """Give the distances of people; those of person p are `thing[start[p]:start[p + 1]]`."""

    @abstractmethod
    def apart(self, thing: IntArray) -> Floats:
        """Give how far each of a group's things lies from their middle."""

    @abstractmethod
    def picked(self, thing: IntArray, names: IntArray) -> IntArray:
        """Pick for each thing a query that says it, by chance; names are those of the draws."""

    def varied(self, chosen: IntArray, thing: IntArray, apart: Floats) -> IntArray:
        """Exchange choices until they have the topics that are asked for; without topics, none."""
        return chosen

    def category(self, thing: IntArray) -> IntArray:
        """Give the category of each thing, if there are any."""
        return np.full(thing.size, NOTHING, np.int64)

    def _often(self, thing: IntArray, user: IntArray) -> npt.NDArray[np.bool_]:
        """Tell by its number whether each thing is of enough people to be shown."""
        people = int(user.max()) + 1
        askers = np.bincount(np.unique(thing * people + user) // people)
        return np.asarray(askers >= self.settings.asked_by)

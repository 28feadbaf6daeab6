"""Base of `dp-histogram` and `threshold-dp`: noisy counts of the first items of each user.

Noise comes from OpenDP: exact samplers on the random bits of the operating system. It cannot be seeded, since
noise that can be repeated can be subtracted.
"""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl

from querycloak.accounting import library
from querycloak.dictionary import Dictionaries
from querycloak.kernels.arrays import grown
from querycloak.log import Flags, FloatArray, IntArray
from querycloak.methods.shared.budget import PrivacyBudget, take_within_limit
from querycloak.protector import Protector

BEYOND: Final = "beyond the person's share"
COUNTED: Final = "counted, not shown"
#: Numbers that go to OpenDP together, as a list.
_SLICE = 1 << 16
#: Entries that are added before equal ones are merged for the first time.
_UNMERGED: Final = 1 << 12
_ITEM: Final = (1 << 32) - 1  # the lower half of a user and an item in one number


def require_opendp() -> None:
    """Load OpenDP. Raise MissingExtra if it is not installed."""
    library("noise for counts")


def add_laplace(counts: IntArray, scale: float) -> IntArray:
    """Add to each count its own draw of the discrete Laplace distribution: P(x) ∝ exp(-|x| / scale)."""
    opendp = library("noise for counts")
    domain = opendp.domains.vector_domain(opendp.domains.atom_domain(T="i64"))
    noise = opendp.measurements.make_laplace(domain, opendp.metrics.l1_distance(T="i64"), scale=scale)
    slices = [counts[start : start + _SLICE].tolist() for start in range(0, counts.size, _SLICE)]
    with ThreadPoolExecutor() as pool:  # OpenDP lets other threads run while it draws
        return np.array([count for part in pool.map(noise, slices) for count in part], np.int64)


class ItemCounts:
    """Exact counts of each user and item.

    Equal entries are merged when they are read, or when as many were added as there are. So the cost of an
    entry does not grow with what is held.
    """

    def __init__(self) -> None:
        self._pair = np.empty(0, np.int64)  # (user << 32) + item, sorted
        self._count = np.empty(0, np.int64)
        self._added: list[IntArray] = []
        self._unmerged = 0

    def add(self, users: IntArray, items: IntArray) -> None:
        """Add one to the count of each user and item."""
        if users.size:
            self._added.append((users << 32) + items)
        self._unmerged += users.size
        if self._unmerged >= max(_UNMERGED, self._pair.size):
            self._merge()

    def _merge(self) -> None:
        more = np.ones(self._unmerged, np.int64)
        self._hold(np.concatenate([self._pair, *self._added]), np.concatenate([self._count, more]))

    def _hold(self, pair: IntArray, count: IntArray) -> None:
        self._pair, place = np.unique(pair, return_inverse=True)
        self._count = np.zeros(self._pair.size, np.int64)
        np.add.at(self._count, place, count)
        self._added, self._unmerged = [], 0

    def cells(self) -> IntArray:
        """Return users, items and counts in three rows, sorted by user and item."""
        if self._added:
            self._merge()
        return np.stack([self._pair >> 32, self._pair & _ITEM, self._count])

    def replace(self, cells: IntArray) -> None:
        """Hold these cells instead of all others; several of one user and item are added up."""
        self._hold((cells[0] << 32) + cells[1], cells[2])

    def erase(self, users: IntArray) -> None:
        """Count without these users."""
        cells = self.cells()
        self.replace(cells[:, ~np.isin(cells[0], users)])


class CountsProtector(Protector):
    """Method that counts the first items of each user and releases noisy counts at the end.

    `limit` is the number of items of a user that count. `cost` is what a history exchanged for another
    spends, with failure probability `delta`; None without a guarantee, which spends all there is.
    """

    extra = "dp"
    _way_out: ClassVar[str]  # hint for a release that someone's budget does not allow

    def __init__(
        self, settings: Any, key: bytes, texts: Dictionaries, *, limit: int, cost: float | None, delta: float
    ) -> None:
        super().__init__(settings, key, texts)
        self._limit, self._cost = limit, cost
        self._used = np.zeros(0, np.int64)  # by user code: items that count so far
        self._counts = ItemCounts()
        self._budget = self.source_state = PrivacyBudget(
            settings.budget, texts.user, self._spent, worst=cost, delta=delta
        )
        self._result: pl.DataFrame | None = None

    @abstractmethod
    def _people(self) -> IntArray:
        """Return the users of the log."""

    def _spent(self) -> tuple[IntArray, FloatArray]:
        """Return the users of the log and what each of them spends."""
        people = self._people()
        return people, np.full(people.size, np.inf if self._cost is None else self._cost)

    def check_ready(self) -> None:
        """Raise MissingExtra without OpenDP, before a long log is read."""
        require_opendp()

    def _take_first(self, users: IntArray, need: IntArray) -> Flags:
        """Return which records are within the limits of their users, if each needs so many items."""
        self._reserve(users)
        people, place = np.unique(users, return_inverse=True)
        used = self._used[people]
        taken: Flags = take_within_limit(place, need, used, np.full(people.size, self._limit))
        self._used[people] = used
        return taken

    def _reserve(self, users: IntArray) -> None:
        self._used = grown(self._used, int(users.max(initial=-1)) + 1)

    def _check_budget(self) -> None:
        """Raise Refused if a user cannot afford this release."""
        people, amount = self._spent()
        if self._cost is not None and not self._budget.affordable(people, amount).all():
            self._budget.raise_overspent(people, self._way_out)

    def counts(self) -> pl.DataFrame:
        """Return the table that `close` drew."""
        if self._result is None:
            raise RuntimeError("the counts are there once the input has ended")
        return self._result

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Count as if these users had never been in the log."""
        self._reserve(users)
        self._used[users] = 0
        self._counts.erase(users)
        self._budget.erase(users)

"""`frequent-only`: a query leaves once enough different people have asked it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.guarantees import Guarantee
from querycloak.guarantees.frequent import asked_by
from querycloak.kernels import askers
from querycloak.kernels.tables import PairTable
from querycloak.log import BIT, Batch, IntArray
from querycloak.protector import Protector, State
from querycloak.settings import setting


class FrequentOnly(Protector):
    """Release a query only once at least k different people have asked it; the user column is empty.

    Promise: every released query was asked by at least `k` people before its first row left.

    Does not protect against:
        - texts that k people share and that still say something about one of them
        - k accounts that one attacker opened to push a text over the threshold
        - times and clicked pages, which leave as they are (see `time` of other methods)

    Reference: the allow-list by frequency of ORCAS (Craswell et al., 2020) and of Adar (2007).
    """

    name = "frequent-only"
    reads = frozenset({"user", "query"})
    empties = frozenset({"user"})
    coded: ClassVar[dict[str, str]] = {
        **Protector.coded,
        "queries_first": "query",
        "pairs_first": "query",
    }
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "a rare query may become frequent at any later time, so it has to be held"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `frequent-only`."""

        k: int = setting(5, kind=int, at_least=2, help="people who must have asked a query before it leaves")

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self._queries, self._pairs = PairTable(), PairTable()
        self._held = Batch.empty(texts)

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [cls.Settings(k=2), cls.Settings(k=3)]

    def promise(self) -> Guarantee:
        """Say what an independent audit can test."""
        k = self.settings.k
        return Guarantee(
            words=f"every released query was asked by at least {k} people before its first row left",
            does_not_protect_against=(
                f"texts that {k} people share and that still say something about one of them",
                f"{k} accounts opened by one attacker to push a text over the threshold",
                "times and clicked pages, which leave as they are",
            ),
            audits=asked_by(k),
        )

    def partition_key(self, batch: Batch) -> IntArray:
        """Keep all records of a query together."""
        return self.key_of_text(self.texts.query, batch.query)

    def push(self, batch: Batch) -> Batch:
        """Count the askers, then let go of every record whose query has enough of them."""
        self._queries.reserve(len(batch))
        self._pairs.reserve(len(batch))
        tables = self._queries.arrays + self._pairs.arrays
        askers.admit(batch.query, batch.user, batch.seq, self.settings.k, *tables)
        waiting = self._held + batch
        opened = askers.opened_at(waiting.query, *self._queries.arrays)
        safe = opened >= 0
        self._held = waiting[~safe]
        free = waiting[safe]
        blank = free.blank | BIT["user"]
        return free.replace(seq=np.maximum(free.seq, opened[safe]), blank=blank)

    def close(self) -> Batch:
        """Drop what too few people asked."""
        self.drop(self._held.row, "asked by too few people")
        self._held = Batch.empty(self.texts)
        return self._held

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Count without them; a query of which fewer than k people are known then waits for others again.

        Of a query that was frequent enough only its first k people are known. What has left stays out.
        """
        stays = self.forget(self._held, users, rows)
        gone, self._held = self._held[~stays], self._held[stays]
        lost = np.setdiff1d(_asked(gone.query, gone.user), _asked(self._held.query, self._held.user))
        pairs, queries = self._pairs.items(), self._queries.items()
        asks = ~np.isin(pairs["second"], users) & ~np.isin(_asked(pairs["first"], pairs["second"]), lost)
        place = np.searchsorted(queries["first"], pairs["first"][asks])
        people = np.bincount(place, minlength=queries["first"].size)
        still_open = (queries["value"] < 0) & (people >= self.settings.k)
        value = np.where(still_open, queries["value"], people)[people > 0]
        self._pairs = PairTable.of(*(pairs[part][asks] for part in ("first", "second", "value")))
        self._queries = PairTable.of(queries["first"][people > 0], queries["second"][people > 0], value)

    def snapshot(self) -> State:
        """Give the counts and the held records."""
        held = {f"held_{name}": array for name, array in self._held.arrays().items()}
        queries = {f"queries_{name}": array for name, array in self._queries.items().items()}
        pairs = {f"pairs_{name}": array for name, array in self._pairs.items().items()}
        return held | queries | pairs | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._held = Batch.of({name: state[f"held_{name}"] for name in Batch.COLUMNS}, self.texts)
        parts = ("first", "second", "value")
        self._queries = PairTable.of(*(state[f"queries_{part}"] for part in parts))
        self._pairs = PairTable.of(*(state[f"pairs_{part}"] for part in parts))
        self._restore_dropped(state)


def _asked(query: IntArray, user: IntArray) -> IntArray:
    """Make one number of a query and a user."""
    return (query << 32) + user

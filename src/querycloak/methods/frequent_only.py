"""`frequent-only`: a query is released once enough different people have asked it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from querycloak import settings as declared
from querycloak.audits.users import asked_by
from querycloak.dictionary import Dictionaries
from querycloak.guarantee import Guarantee, Sentence
from querycloak.log import COLUMN_BIT, Batch, IntArray
from querycloak.methods.shared.records import ChainedSlots, users_setting
from querycloak.methods.shared.user_counts import UsersUntil, key_and_user
from querycloak.protector import HELD_CODES, Labels, Protector, State, Traits


class FrequentOnly(Protector):
    """Release a query only once at least k different people have asked it; the user column is empty.

    Guarantee: every released query was asked by at least `k` users before its first row was released. The
    user column is empty.

    Limits: a query that k users share and that still identifies one of them; k accounts that one attacker
    opened to lift a query over the threshold; times and clicked pages, which are released unchanged.

    Reference: the allow-list by frequency of ORCAS (Craswell et al., 2020) and of Adar (2007).
    """

    name = "frequent-only"
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "a rare query may become frequent at any later time, so it has to be held"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `frequent-only`."""

        k: int = users_setting(5, help="people who must have asked a query before it leaves")

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._users = UsersUntil(settings.k)
        self._held = ChainedSlots(texts)  # by query code + 1

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [cls.Settings(k=2), cls.Settings(k=3)]

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `frequent-only` with these settings."""
        return Traits(
            empties=frozenset({"user"}),
            labels=Labels.NONE,
            coded_state={**HELD_CODES, "queries_first": "query", "pairs_first": "query"},
            main_setting="k",
        )

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `frequent-only` with these settings."""
        k = settings.k
        return Guarantee.of(
            Sentence(
                f"every released query was asked by at least {k} users before its first row was released",
                asked_by(k),
            ),
            Sentence("the user column is empty", (), ("user",)),
            limits=(
                f"a query that {k} users share and that still identifies one of them",
                f"{k} accounts that one attacker opened to lift a query over the threshold",
                "times and clicked pages, which are released unchanged",
            ),
        )

    def partition_key(self, batch: Batch) -> IntArray:
        """Keep all records of a query together."""
        return self.key_of_text(self.texts.query, batch.query)

    def push(self, batch: Batch) -> Batch:
        """Count users; return every record whose query enough of them have asked."""
        enough = self._users.add(batch.query, batch.user, batch.seq) >= self.settings.k
        moment = self._users.reached_at(batch.query)
        slots = self._held.add(batch)
        self._held.reserve(int(batch.query.max(initial=-1)) + 2)
        out = np.empty((len(self._held), 2), np.int64)
        n = _release(batch.query, slots, enough, moment, self._held.last, self._held.before, out)
        records, moment = self._held.pop(out[:n, 0]), out[:n, 1]
        blank = records.blank | COLUMN_BIT["user"]
        return records.replace(seq=np.maximum(records.seq, moment), blank=blank)

    def close(self) -> Batch:
        """Drop what too few users asked."""
        self.drop(self._held.pop_all().row, "asked by too few people")
        return Batch.empty(self.texts)

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Count without them; a query of which fewer than k people are known then waits for others again.

        Of a query that was frequent enough only its first k people are known. What has left stays out.
        """
        held = self._held.peek(self._held.slots())
        stays = self.drop_erased(held, users, rows)
        self._held.keep(stays, held.query + 1)
        pair = key_and_user(held.query, held.user)
        self._users.erase(users, np.setdiff1d(pair[~stays], pair[stays]))

    def snapshot(self) -> State:
        """Return the counts and the held records."""
        held = self._held.snapshot(self._held.slots())
        return held | self._users.snapshot() | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        slots = self._held.restore(state)
        self._held.reserve(int(state["held_query"].max(initial=-1)) + 2)
        self._held.chain(state["held_query"] + 1, slots)
        self._users.restore(state)
        self._restore_dropped(state)


@njit(cache=True, nogil=True)
def _release(query, slot, enough, moment, last, before, out):  # type: ignore[no-untyped-def]
    """Hold each record, and list all held ones of its query if enough users asked it.

    `last` (INOUT, by query + 1) and `before` (INOUT, by slot) chain the slots of held records. `out` gets the
    slot and the moment of each record that may leave; return how many there are.
    """
    size = 0
    for i in range(query.size):
        before[slot[i]] = last[query[i] + 1]
        last[query[i] + 1] = slot[i]
        if enough[i]:
            one = slot[i]
            while one >= 0:
                out[size, 0], out[size, 1] = one, moment[i]
                size += 1
                one = before[one]
            last[query[i] + 1] = -1
    return size

"""`z-anonymity`: decide at once; show a query only if enough others asked it a moment ago."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.guarantees import Guarantee
from querycloak.guarantees.window import in_company
from querycloak.kernels import sliding
from querycloak.kernels.tables import PairTable
from querycloak.log import BIT, NO_TIME, NOTHING, Batch, IntArray
from querycloak.methods.labels import Labels, labels_setting
from querycloak.protector import Protector, State
from querycloak.settings import setting

SECOND = 1_000_000  # times are in microseconds
DEEPEST = 13  # levels of a category path
CHUNK = 1 << 14  # records taken at once, so that the tables stay as small as the window
_PARTS = ("first", "second", "value")  # of a table of pairs
_KEY, _USER = 1, 2  # lines of the queue
_KINDS = 16  # keys of queries and of each level must not meet: code * 16 + level


class ZAnonymity(Protector):
    """Release a query at once if z different people asked it within the last `window` seconds.

    A query that too few share is replaced by the deepest of its categories that enough share (with
    `generalise=yes`), or left out. Nothing waits: the delay is nought.

    Promise: each released text, a query or a category, was asked by at least `z` people in the last
    `window` seconds, the record's own user among them.

    Does not protect against:
        - linking all records of one label: labels are the users' own, or steady pseudonyms
        - a text that z people share within the window and that still names one of them
        - z accounts of one attacker

    Reference: zero-delay anonymisation of streams (Jha et al., z-anonymity, 2020).
    """

    name = "z-anonymity"
    reads = frozenset({"user", "query", "time", "category"})
    needs = frozenset({"user", "query", "time"})
    holds = False
    wants_order = True
    rewrites = frozenset({"user", "query", "category"})
    coded: ClassVar[dict[str, str]] = {
        f"{part}_{column}": column for part in ("keys", "pairs", "queue") for column in ("query", "category")
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `z-anonymity`."""

        z: int = setting(
            5, kind=int, at_least=2, help="people who must have asked the same within the window"
        )
        window: float = setting(
            3600.0, kind=float, at_least=0.000001, help="length of the window, in seconds"
        )
        generalise: bool = setting(True, kind=bool, help="show a category where the query itself is too rare")
        labels: str = labels_setting()  # type: ignore[assignment]

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self._labels = Labels(settings.labels, key, texts)
        self._keys, self._pairs = PairTable(), PairTable()
        self._clock = np.array([NO_TIME // 2, 0], np.int64)
        self._queue = np.empty((4, 0), np.int64)

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [
            cls.Settings(z=2, window=60),
            cls.Settings(z=2, window=3600, labels="fresh"),
            cls.Settings(z=3, window=600, generalise=False),
        ]

    @property
    def _span(self) -> int:
        return round(self.settings.window * SECOND)

    def promise(self) -> Guarantee:
        """Say what an independent audit can test."""
        z, window = self.settings.z, self.settings.window
        levels = DEEPEST if self.settings.generalise else 0
        return Guarantee(
            words=f"each released text was asked by at least {z} people in the last {window:g} seconds",
            does_not_protect_against=(
                "linking all records of one label: a user keeps one label throughout a release",
                f"a text that {z} people share within the window and that still names one of them",
                f"{z} accounts of one attacker",
            ),
            audits=(in_company(z, self._span, levels),),
        )

    def partition_key(self, batch: Batch) -> IntArray | None:
        """Keep a query's records together; with categories everything hangs together at level 1."""
        if not self.settings.generalise:
            return self.key_of_text(self.texts.query, batch.query)
        return None

    def push(self, batch: Batch) -> Batch:
        """Decide on each record as it comes."""
        keys = self._keys_of(batch)
        time = np.where(batch.time == NO_TIME, self._clock[0], batch.time)
        cuts = range(0, len(batch), CHUNK)
        parts = [
            self._expose(keys[i : i + CHUNK], batch.user[i : i + CHUNK], time[i : i + CHUNK]) for i in cuts
        ]
        chosen = np.concatenate([np.empty(0, np.int64), *parts])
        self.drop(batch.row[chosen < 0], "too few people asked the same within the window")
        shown = self._generalised(batch, chosen)[chosen >= 0]
        return self._labels.apply(shown)

    def _keys_of(self, batch: Batch) -> IntArray:
        columns = [batch.query * _KINDS]
        if self.settings.generalise:
            depth = self.texts.category.depths(batch.category)
            for level in range(self._deepest(batch), 0, -1):
                cut = self.texts.category.at_level(batch.category, level) * _KINDS + level
                columns.append(np.where(depth >= level, cut, NOTHING))
        return np.stack(columns, axis=1)

    def _deepest(self, batch: Batch) -> int:
        return min(DEEPEST, int(self.texts.category.depths(batch.category).max(initial=0)))

    def _expose(self, keys: IntArray, user: IntArray, time: IntArray) -> IntArray:
        live, new = self._queue.shape[1], keys.size
        queue = np.empty((4, live + new), np.int64)
        queue[:, :live] = self._queue
        self._keys.reserve(new)
        self._pairs.reserve(new)
        ends = np.array([0, live], np.int64)
        tables = self._keys.arrays + self._pairs.arrays
        chosen: IntArray = sliding.expose(
            keys, user, time, self._span, self.settings.z, self._clock, ends, *queue, *tables
        )
        self._queue = queue[:, ends[0] : ends[1]].copy()
        return chosen

    def _generalised(self, batch: Batch, chosen: IntArray) -> Batch:
        """Write the category where it stands in for the query; a click would tell the query again."""
        coarse = chosen > 0
        if not coarse.any():
            return batch
        level = self._deepest(batch) + 1 - chosen
        query, category, blank = batch.query.copy(), batch.category.copy(), batch.blank.copy()
        for each in np.unique(level[coarse]):
            here = coarse & (level == each)
            category[here] = self.texts.category.at_level(batch.category[here], int(each))
            names = np.unique(category[here])
            codes = self.texts.query.encode(self.texts.category.decode(names))
            query[here] = codes[np.searchsorted(names, category[here])]
        blank[coarse] |= BIT["rank"] | BIT["url"]
        return batch.replace(query=query, category=category, blank=blank)

    def label_of(self, users: IntArray) -> IntArray:
        """Give the label that stands for each user in what leaves."""
        return self._labels.of(users)

    def close(self) -> Batch:
        """Nothing waits, so nothing is left."""
        return Batch.empty(self.texts)

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Forget what they asked within the window: nobody is in their company any more."""
        pairs = self._pairs.items()
        stays = ~np.isin(pairs["second"], users)
        self._pairs = PairTable.of(*(pairs[part][stays] for part in _PARTS))
        keys, askers = np.unique(pairs["first"][stays], return_counts=True)
        self._keys = PairTable.of(keys, np.zeros_like(keys), askers)
        self._queue = self._queue[:, ~np.isin(self._queue[_USER], users)]

    def snapshot(self) -> State:
        """Give the events within the window; keys that stand for queries apart from those of categories."""
        tables = {"keys": self._keys.items(), "pairs": self._pairs.items()}
        state = {f"{name}_{k}": v for name, table in tables.items() for k, v in table.items() if k != "first"}
        keys = {"queue": self._queue[_KEY]} | {name: table["first"] for name, table in tables.items()}
        for name, key in keys.items():
            code, level = np.divmod(key, _KINDS)
            state[f"{name}_query"] = np.where(level == 0, code, NOTHING)
            state[f"{name}_category"] = np.where(level > 0, code, NOTHING)
            state[f"{name}_level"] = level
        state["queue"] = np.delete(self._queue, _KEY, axis=0)
        return state | {"clock": self._clock.copy()} | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        first = {name: _keys_in(state, name) for name in ("queue", "keys", "pairs")}
        self._keys = PairTable.of(first["keys"], *(state[f"keys_{part}"] for part in _PARTS[1:]))
        self._pairs = PairTable.of(first["pairs"], *(state[f"pairs_{part}"] for part in _PARTS[1:]))
        self._queue = np.insert(state["queue"], _KEY, first["queue"], axis=0)
        self._clock = state["clock"].copy()
        self._restore_dropped(state)


def _keys_in(state: State, name: str) -> IntArray:
    """Put the keys of one table together again."""
    level = state[f"{name}_level"]
    code = np.where(level == 0, state[f"{name}_query"], state[f"{name}_category"])
    return np.asarray(code * _KINDS + level)

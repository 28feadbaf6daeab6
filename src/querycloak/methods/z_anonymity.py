"""`z-anonymity`: decides at once, and releases a query only if enough users asked it in the last window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak import settings as declared
from querycloak.audits.cells import CATEGORY_OR_ABOVE
from querycloak.audits.users import in_company
from querycloak.dictionary import Dictionaries
from querycloak.guarantee import Guarantee, Sentence
from querycloak.log import COLUMN_BIT, MISSING, Batch, IntArray
from querycloak.methods.shared.labels import LabelMethod, labels_setting
from querycloak.methods.shared.records import users_setting
from querycloak.methods.shared.user_counts import UsersInWindow
from querycloak.protector import State, Traits
from querycloak.settings import setting

SECOND = 1_000_000  # times are in microseconds
DEEPEST = 13  # levels of a category path
_KINDS = 16  # keys of queries and of each level must not meet: code * 16 + level
_COUNTED = ("keys", "pairs", "queue")  # arrays of a snapshot that begin with keys


class ZAnonymity(LabelMethod):
    """Release a query at once if z different people asked it within the last `window` seconds.

    A query that too few share is replaced by the deepest of its categories that enough share (with
    `generalise=yes`), or left out. Nothing waits: the delay is nought.

    Guarantee: each released text, a query or a category, was asked by at least `z` users within the last
    `window` seconds, the author among them. A released category is that of the record or a more general one.

    Limits: linking all records of one label: a user has one label in the whole release; a text that z users
    share within the window and that still identifies one of them; z accounts of one attacker.

    Reference: zero-delay anonymisation of streams (Jha et al., z-anonymity, 2020).
    """

    name = "z-anonymity"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `z-anonymity`."""

        z: int = users_setting(5, help="people who must have asked the same within the window")
        window: float = setting(
            3600.0, at_least=0.000001, stronger="smaller", help="length of the window, in seconds"
        )
        generalise: bool = setting(True, help="show a category where the query itself is too rare")
        labels: str = labels_setting()

        @property
        def span(self) -> int:
            """Length of the window in microseconds."""
            return round(self.window * SECOND)

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._users = UsersInWindow(settings.span)

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [
            cls.Settings(z=2, window=60),
            cls.Settings(z=2, window=3600, labels="fresh"),
            cls.Settings(z=3, window=600, generalise=False),
        ]

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `z-anonymity` with these settings."""
        return Traits(
            reads=frozenset({"user", "query", "time", "category"}),
            requires=frozenset({"user", "query", "time"}),
            rewrites=frozenset({"user", "query", "category"}),
            may_empty=frozenset({"rank", "url"}),
            buffers_records=False,
            needs_time_order=True,
            fresh_labels=settings.labels == "fresh",
            coded_state={f"{part}_{column}": column for part in _COUNTED for column in ("query", "category")},
            main_setting="z",
        )

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `z-anonymity` with these settings."""
        z, window = settings.z, settings.window
        levels = DEEPEST if settings.generalise else 0
        return Guarantee.of(
            Sentence(
                f"each released text was asked by at least {z} users within the last {window:g} seconds",
                (in_company(z, settings.span, levels),),
            ),
            Sentence("a released category is that of the record or a more general one", (CATEGORY_OR_ABOVE,)),
            limits=(
                "linking all records of one label: a user has one label in the whole release",
                f"a text that {z} users share within the window and that still identifies one of them",
                f"{z} accounts of one attacker",
            ),
        )

    def partition_key(self, batch: Batch) -> IntArray | None:
        """Keep the records of a query together; with categories, queries share those of level 1."""
        if not self.settings.generalise:
            return self.key_of_text(self.texts.query, batch.query)
        return None

    def push(self, batch: Batch) -> Batch:
        """Decide on each record as it comes."""
        enough = self._users.add(self._keys_of(batch), batch.user, batch.time) >= self.settings.z
        chosen = np.where(enough.any(axis=1), enough.argmax(axis=1), MISSING)
        self.drop(batch.row[chosen < 0], "too few people asked the same within the window")
        shown = self._generalised(batch, chosen)[chosen >= 0]
        return self._labels.apply(shown)

    def _keys_of(self, batch: Batch) -> IntArray:
        columns = [batch.query * _KINDS]
        if self.settings.generalise:
            depth = self.texts.category.depths(batch.category)
            for level in range(self._deepest(batch), 0, -1):
                cut = self.texts.category.at_level(batch.category, level) * _KINDS + level
                columns.append(np.where(depth >= level, cut, MISSING))
        return np.stack(columns, axis=1)

    def _deepest(self, batch: Batch) -> int:
        return min(DEEPEST, int(self.texts.category.depths(batch.category).max(initial=0)))

    def _generalised(self, batch: Batch, chosen: IntArray) -> Batch:
        """Replace queries by categories where chosen, without clicks: a page would disclose the query."""
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
        blank[coarse] |= COLUMN_BIT["rank"] | COLUMN_BIT["url"]
        return batch.replace(query=query, category=category, blank=blank)

    def close(self) -> Batch:
        """Return nothing, since nothing is held."""
        return Batch.empty(self.texts)

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Remove what these users asked within the window from the counts."""
        self._users.erase(users)

    def snapshot(self) -> State:
        """Return the events within the window; keys that stand for queries apart from those of categories."""
        state = self._users.snapshot()
        for name in _COUNTED:
            code, level = np.divmod(state.pop(f"{name}_first"), _KINDS)
            state[f"{name}_query"] = np.where(level == 0, code, MISSING)
            state[f"{name}_category"] = np.where(level > 0, code, MISSING)
            state[f"{name}_level"] = level
        return state | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        keys: State = {}
        for name in _COUNTED:
            level = state[f"{name}_level"]
            code = np.where(level == 0, state[f"{name}_query"], state[f"{name}_category"])
            keys[f"{name}_first"] = code * _KINDS + level
        self._users.restore(state | keys)
        self._restore_dropped(state)

"""`cap`: release at most n searches of each user."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import faults
from querycloak.dictionary import Dictionaries
from querycloak.guarantee import Audit, Guarantee, Sentence
from querycloak.log import Batch, IntArray
from querycloak.protector import Protector, State
from querycloak.settings import setting


class Cap(Protector):
    """Release the first n searches of each user, so that no user dominates a release.

    Guarantee: at most `n` searches of each user are released.

    Limits:
        - what the released searches say
        - a person with several accounts
    """

    name = "cap"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `cap`."""

        n: int = setting(100, kind=int, at_least=1, help="searches of one user that are released")

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._shown: Counter[int] = Counter()

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [cls.Settings(n=1), cls.Settings(n=3)]

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee, with the audit that tests it."""
        n = settings.n
        check = f"no user has more than {n} released searches"
        few = Audit(check, lambda e: _too_many(n, e), needs_truth=True)
        return Guarantee.of(
            Sentence(f"at most {n} searches of each user are released", (few,)),
            limits=("what the released searches say", "a person with several accounts"),
        )

    def partition_key(self, batch: Batch) -> IntArray:
        """Keep the records of a user together."""
        return batch.user

    def push(self, batch: Batch) -> Batch:
        """Release a record while its user is within the limit."""
        within = np.fromiter((self._take(user) for user in batch.user.tolist()), bool, count=len(batch))
        self.drop(batch.row[~within], "beyond the limit of the user")
        return batch[within]

    def _take(self, user: int) -> bool:
        self._shown[user] += self._shown[user] < self.settings.n + 1
        return self._shown[user] <= self.settings.n

    def close(self) -> Batch:
        """Release nothing: no record is held."""
        return Batch.empty(self.texts)

    def snapshot(self) -> State:
        """Return the counts as arrays."""
        pairs = np.array(sorted(self._shown.items()), np.int64).reshape(-1, 2)
        return {"user": pairs[:, 0], "shown": pairs[:, 1]} | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        self._shown = Counter(dict(zip(state["user"].tolist(), state["shown"].tolist(), strict=True)))
        self._restore_dropped(state)


def _too_many(n: int, evidence: Evidence) -> str:
    """Count again, from the ground truth; `head` is where the search of a row starts in the original."""
    rows = evidence.traced.filter(pl.col("place") >= 0).collect()
    rows = rows.with_columns(head=pl.Series(evidence.searches.head[rows["place"].to_numpy()]))
    searches = pl.col("head").n_unique().over("original_user")
    return faults(rows.lazy().filter(searches > n), f"belong to a user with more than {n} searches")

"""What microaggregations by texts share: a group's history keeps how often each person asked what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.log import Batch, IntArray
from querycloak.methods.labels import labels_setting
from querycloak.methods.microaggregation import (
    Microaggregation,
    closeness_setting,
    diversity_setting,
)
from querycloak.methods.sharing import proportional_picks
from querycloak.settings import setting


class MicroaggTexts(Microaggregation):
    """The parent of microaggregations that know texts and no meanings; topics come from the log's column."""

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings that all of them have."""

        k: int = setting(5, kind=int, at_least=2, help="people who share a history, at least")
        diversity: int = diversity_setting()
        closeness: float = closeness_setting()
        time: str = setting(
            "coarsen", kind=str, choices=("coarsen", "drop"), help="`coarsen` to the hour, or `drop`, times"
        )
        labels: str = labels_setting()  # type: ignore[assignment]

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        dropped = {"time"} if settings.time == "drop" else set[str]()
        if self._mixed:
            self.reads = self.reads | {"category"}
        self.empties = (self.rewrites - self.reads) | dropped

    def _usable(self, held: Batch) -> Batch:
        known = (held.query >= 0) & (held.user >= 0)
        self.drop(held.row[~known], "no user or no query")
        return held[known]

    def _chosen(self, theirs: Batch, members: IntArray) -> IntArray:
        """Pick the records that make a group's history: each person's share, in proportion to her queries."""
        draws = self._draws(theirs)
        chosen = proportional_picks(np.searchsorted(members, theirs.user), theirs.query, draws)
        return self._varied(chosen, theirs, draws)

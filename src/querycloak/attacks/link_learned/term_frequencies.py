"""What an attacker knows of how people search in general: how often others use each term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from querycloak.attacks.link_learned.words import FloatArray, split, stems
from querycloak.attacks.searches import Searches

#: Frequencies are given in so many terms.
_MILLION = 1e6


@dataclass(frozen=True)
class TermFrequencies:
    """How often each term (a stem) occurs in the searches of others."""

    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: pl.DataFrame) -> TermFrequencies:
        """Count the terms of a log; several rows of one search count once."""
        words = split(Searches.of(frame).query)
        count = np.bincount(words.code, minlength=len(words.distinct)).tolist()
        found: dict[str, int] = {}
        for stem, times in zip(stems(words.distinct), count, strict=True):
            found[stem] = found.get(stem, 0) + times
        return cls(found)

    def popularity(self, terms: Sequence[str]) -> FloatArray:
        """Return each term's occurrences in a million; nan where nothing is known of others."""
        total = sum(self.counts.values())
        if not total:
            return np.full(len(terms), np.nan)
        return np.array([self.counts.get(term, 0) for term in terms], np.float64) * (_MILLION / total)

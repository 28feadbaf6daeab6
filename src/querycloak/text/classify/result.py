"""What a classifier is, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Dictionaries = Sequence[str]
Urls = Sequence[str | None]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

HOW = ("none", "lexical", "spelling", "form", "url", "letters", "service")
"""How an answer was found; `Classified.how` holds positions in this tuple."""

UNKNOWN = -1
GUESSED = [HOW.index(name) for name in ("none", "letters")]
"""Ways that found no known phrase for their topic; a clicked address may know better."""


@dataclass(frozen=True)
class Classified:
    """One answer per query: a node of the taxonomy (-1: none), a confidence in 0..1, and how it was found."""

    category: IntArray
    confidence: FloatArray
    how: npt.NDArray[np.int8]

    @classmethod
    def nothing(cls, size: int) -> Classified:
        """Answer nothing, so many times."""
        return cls(np.full(size, UNKNOWN, np.int64), np.zeros(size), np.zeros(size, np.int8))

    @classmethod
    def together(cls, pieces: Sequence[Classified]) -> Classified:
        """Put answers one after the other."""
        return cls(
            np.concatenate([piece.category for piece in pieces]),
            np.concatenate([piece.confidence for piece in pieces]),
            np.concatenate([piece.how for piece in pieces]),
        )

    def __len__(self) -> int:
        return int(self.category.size)

    def only(self, rows: npt.NDArray[Any]) -> Classified:
        """Give some of the answers."""
        return Classified(self.category[rows], self.confidence[rows], self.how[rows])

    def put(self, rows: npt.NDArray[Any], other: Classified) -> None:
        """Write another classifier's answers into these rows."""
        self.category[rows] = other.category
        self.confidence[rows] = other.confidence
        self.how[rows] = other.how


class Classifier(Protocol):
    """Anything that maps queries, and where it helps the clicked addresses, to categories."""

    def classify(self, queries: Dictionaries, urls: Urls | None = None) -> Classified:
        """Answer each query; the answer depends on that query and address alone."""
        ...

"""How much of her interests a member has shown so far, counted at her side and from keyed hashes only."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

#: Distinct queries of others that are told apart. Later ones count, but are taken for different from her own.
MOST_OF_OTHERS: Final = 100_000


class Exposure:
    """What she has searched for and what went to the engine under her name, as keyed hashes with counts."""

    def __init__(self, key: bytes, kept: Mapping[str, Any] | None = None) -> None:
        kept = kept or {}
        self._key = key
        self._own: Counter[str] = Counter(kept.get("own", {}))
        self._submitted: Counter[str] = Counter(kept.get("submitted", {}))
        self._beyond = int(kept.get("beyond", 0))

    def copy(self) -> Exposure:
        """Give what is known so far, for somebody who takes time to look at it."""
        return Exposure(self._key, self.kept())

    def _hash(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=12).hexdigest()

    def searched(self, text: str) -> None:
        """Note a query of her own."""
        self._own[self._hash(text)] += 1

    def submitted(self, text: str) -> None:
        """Note a query that went to the engine under her name, whoever wrote it."""
        known = self._hash(text)
        if known in self._submitted or known in self._own or len(self._submitted) < MOST_OF_OTHERS:
            self._submitted[known] += 1
        else:
            self._beyond += 1

    def totals(self) -> dict[str, int]:
        """Say how many queries she has searched for and submitted."""
        return {"searched": self._own.total(), "submitted": self._submitted.total() + self._beyond}

    def level(self) -> float:
        """Give her profile exposure level so far, in percent (4.5); `nan` below two distinct queries."""
        from querycloak.measures import profile_exposure  # heavy, and a peer seldom needs it

        shown: list[str | None] = [*self._submitted.elements(), *[None] * self._beyond]
        return profile_exposure(list(self._own.elements()), shown)

    def kept(self) -> dict[str, Any]:
        """Give what is to be kept over restarts: ordered by hash, so that nothing tells what came first."""
        return {
            "own": dict(sorted(self._own.items())),
            "submitted": dict(sorted(self._submitted.items())),
            "beyond": self._beyond,
        }

"""Pseudonyms: keyed hashes replace user ids on arrival, so no raw id reaches the disk."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

import polars as pl

from querycloak.engines.user_ids import spelling
from querycloak.keys import derive

#: User ids whose pseudonyms are cached in memory.
CACHED: Final = 500_000


def keyed_hash(text: str, key: bytes) -> str:
    """Return a keyed hash of 80 bits as sixteen letters and digits."""
    digest = hashlib.blake2b(text.encode(), key=key, digest_size=10).digest()
    return base64.b32encode(digest).decode().lower()


class Pseudonyms:
    """Pseudonyms of user ids: constant within an epoch, unrelated in the next."""

    def __init__(self, secret: bytes, epoch: int) -> None:
        self._secret = secret
        self.start_epoch(epoch)

    def start_epoch(self, epoch: int) -> None:
        """Start an epoch, in which every user has a new pseudonym."""
        self.epoch, self._key = epoch, derive(self._secret, "pseudonyms", str(epoch))
        self._cache: dict[str, str] = {}

    def of(self, users: Iterable[str]) -> list[str]:
        """Return the pseudonyms of user ids."""
        if len(self._cache) > CACHED:
            self._cache = {}
        known, found = self._cache, []
        for user in users:
            name = known.get(user)
            if name is None:
                name = known[user] = keyed_hash(spelling(user), self._key)
            found.append(name)
        return found

    def before(self, user: str) -> list[str]:
        """Return the user's pseudonyms of all earlier epochs, in order."""
        keys = (derive(self._secret, "pseudonyms", str(epoch)) for epoch in range(self.epoch))
        return [keyed_hash(spelling(user), key) for key in keys]

    def clear_cache(self) -> None:
        """Drop all cached ids, after an erasure."""
        self._cache = {}


class ErasedPseudonyms:
    """Replaces the pseudonyms of erased users who return, since an erased label is never used again.

    Counts of all epochs are kept: a later erasure must find each label that the user ever had.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.times_erased: dict[str, int] = {}

    def erase(self, pseudonym: str) -> None:
        """Retire the present label of a pseudonym."""
        self.times_erased[pseudonym] = self.times_erased.get(pseudonym, 0) + 1

    def current(self, pseudonym: str, epoch: int) -> str:
        """Return the label that a pseudonym has since its last erasure."""
        return self._label(pseudonym, epoch, self.times_erased.get(pseudonym, 0))

    def all_labels(self, pseudonyms: Sequence[str]) -> list[str]:
        """Return every label of a user's pseudonyms, which are those of the epochs 0, 1, …"""
        return [
            self._label(pseudonym, epoch, times)
            for epoch, pseudonym in enumerate(pseudonyms)
            for times in range(self.times_erased.get(pseudonym, 0) + 1)
        ]

    def _label(self, pseudonym: str, epoch: int, times: int) -> str:
        if not times:
            return pseudonym
        return keyed_hash(f"{pseudonym} {times}", derive(self._secret, "strangers", str(epoch)))

    def rename(self, frame: pl.DataFrame, epoch: int) -> pl.DataFrame:
        """Return records with the current labels of users who were erased before."""
        if not self.times_erased:
            return frame
        # The users of a batch are few; those who were erased can be many.
        returned = {
            name: self.current(name, epoch) for name in frame["user"].unique() if name in self.times_erased
        }
        return frame.with_columns(pl.col("user").replace(returned)) if returned else frame

"""User ids are hashed with a key at the door: no raw id reaches the disk, and who was erased is new."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

import polars as pl

from querycloak.keys import derive

#: How many ids are remembered in memory, so that few are hashed twice.
REMEMBERED = 500_000


def hashed(text: str, key: bytes) -> str:
    """Hash a text with a key, to sixteen letters and digits."""
    digest = hashlib.blake2b(text.encode(), key=key, digest_size=10).digest()
    return base64.b32encode(digest).decode().lower()


class Pseudonyms:
    """Turns user ids into pseudonyms: the same within an epoch, unrelated in the next."""

    def __init__(self, secret: bytes, epoch: int) -> None:
        self._secret = secret
        self.turn(epoch)

    def turn(self, epoch: int) -> None:
        """Begin an epoch: everybody gets a new pseudonym."""
        self._epoch, self._key = epoch, derive(self._secret, "pseudonyms", str(epoch))
        self._known: dict[str, str] = {}

    def of(self, users: Iterable[str]) -> list[str]:
        """Give the pseudonyms of user ids."""
        if len(self._known) > REMEMBERED:
            self._known = {}
        known, found = self._known, []
        for user in users:
            name = known.get(user)
            if name is None:
                name = known[user] = hashed(user, self._key)
            found.append(name)
        return found

    def before(self, user: str) -> list[str]:
        """Give the pseudonyms that a person had in earlier epochs."""
        keys = (derive(self._secret, "pseudonyms", str(epoch)) for epoch in range(self._epoch))
        return [hashed(user, key) for key in keys]

    def forget(self) -> None:
        """Forget all ids that are remembered: somebody asked to be erased."""
        self._known = {}


class Strangers:
    """Gives people who were erased and come back another pseudonym, since the old one may never be drawn."""

    def __init__(self, secret: bytes, epoch: int) -> None:
        self._key = derive(secret, "strangers", str(epoch))
        self.erased: dict[str, int] = {}

    def erase(self, pseudonym: str) -> None:
        """Note that nobody may go by this pseudonym's present form again."""
        self.erased[pseudonym] = self.erased.get(pseudonym, 0) + 1

    def now(self, pseudonym: str) -> str:
        """Give the form that stands for this pseudonym since its last erasure."""
        times = self.erased.get(pseudonym, 0)
        return hashed(f"{pseudonym} {times}", self._key) if times else pseudonym

    def renamed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Rename the people of these records who were erased before."""
        if not self.erased:
            return frame
        # Those who were erased may be many; those who send at this moment are few.
        back = {name: self.now(name) for name in frame["user"].unique() if name in self.erased}
        return frame.with_columns(pl.col("user").replace(back)) if back else frame

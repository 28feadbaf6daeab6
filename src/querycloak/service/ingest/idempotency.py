"""Idempotency keys: stored answers, so that a retry of a request changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from querycloak.errors import Refused
from querycloak.keys import derive
from querycloak.service.ingest.parse import shortened

#: Keys that are stored, at most; the oldest are dropped first.
MOST_KEYS: Final = 100_000
#: Bytes of a digest that are of the key; the rest is of the body.
KEY_BYTES: Final = 16
#: Hash of key and body, time in microseconds, answer.
StoredKey = tuple[bytes, int, bytes]


def other_body() -> Refused:
    """Return the error for a key that was used with another body."""
    return Refused("this Idempotency-Key was used for another body", hint="use a new key for each body")


class IdempotencyKeys:
    """Answers to requests with a key, for a stated time; keys and bodies are keyed hashes."""

    def __init__(self, secret: bytes, keep_seconds: int) -> None:
        self._hash_key, self._keep = derive(secret, "retry keys"), keep_seconds * 1_000_000
        self._answers: dict[bytes, tuple[int, bytes, bytes]] = {}

    def digest(self, key: str, body: bytes) -> bytes:
        """Return a hash of the key followed by a hash of the body."""
        own = hashlib.blake2b(key.encode(), key=self._hash_key, digest_size=KEY_BYTES).digest()
        return own + hashlib.blake2b(body, key=self._hash_key, digest_size=8).digest()

    def find(self, digest: bytes) -> dict[str, Any] | None:
        """Return the earlier answer to a retry. Raise Refused for the same key with another body."""
        known = self._answers.get(digest[:KEY_BYTES])
        if known is None:
            return None
        _, body, answer = known
        if body != digest[KEY_BYTES:]:
            raise other_body()
        found: dict[str, Any] = msgspec.json.decode(answer)
        return found

    def stored(self, digest: bytes, answer: Mapping[str, Any], now: int) -> tuple[StoredKey, ...]:
        """Return what an entry of the write-ahead log holds of a key; nothing without one."""
        return ((digest, now, msgspec.json.encode(shortened(answer))),) if digest else ()

    def add(self, keys: Sequence[StoredKey]) -> None:
        """Store answers, also those from before a restart."""
        for digest, at, answer in keys:
            self._answers[digest[:KEY_BYTES]] = (at, digest[KEY_BYTES:], answer)

    def expire(self, now: int) -> None:
        """Drop answers that are too old or too many; they are in order of time."""
        while self._answers:
            key, (at, _, _) = next(iter(self._answers.items()))
            if now - at < self._keep and len(self._answers) <= MOST_KEYS:
                return
            del self._answers[key]

    def items(self) -> list[StoredKey]:
        """Return all stored keys, for a snapshot."""
        return [(key + body, at, answer) for key, (at, body, answer) in self._answers.items()]

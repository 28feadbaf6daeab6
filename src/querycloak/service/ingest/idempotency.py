"""Idempotency keys: stored answers, so that a retry of a request changes nothing."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from querycloak.errors import QueryCloakError, Refused
from querycloak.keys import derive
from querycloak.service.ingest.parse import shortened
from querycloak.service.sinks.database import Database

#: Bytes of a digest that are of the key; the rest is of the body.
KEY_BYTES: Final = 16
#: Keys in memory before they are written.
_MOST_NEW: Final = 20_000
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS idempotency_keys (key BLOB PRIMARY KEY, body BLOB NOT NULL, at INTEGER NOT NULL,
    answer BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idempotency_keys_at ON idempotency_keys (at);
"""
_FIND: Final = "SELECT body, at, answer FROM idempotency_keys WHERE key = ?"
#: Hash of key and body, time in microseconds, answer.
StoredKey = tuple[bytes, int, bytes]


def other_body() -> Refused:
    """Return the error for a key that was used with another body."""
    return Refused("this Idempotency-Key was used for another body", hint="use a new key for each body")


class IdempotencyKeys:
    """Answers to requests with a key, for a stated time; keys and bodies are keyed hashes.

    New keys are in memory and in the write-ahead log until `flush` writes them to the database. Only the
    committer's thread may use them.
    """

    def __init__(self, database: Database, secret: bytes, keep_seconds: int) -> None:
        self._database, self._keep = database, keep_seconds * 1_000_000
        self._hash_key = derive(secret, "retry keys")
        self._new: dict[bytes, tuple[bytes, int, bytes]] = {}
        database.create(_TABLE)

    def digest(self, key: str, body: bytes) -> bytes:
        """Return a hash of the key followed by a hash of the body."""
        own = hashlib.blake2b(key.encode(), key=self._hash_key, digest_size=KEY_BYTES).digest()
        return own + hashlib.blake2b(body, key=self._hash_key, digest_size=8).digest()

    def find(self, digest: bytes, now: int) -> dict[str, Any] | None:
        """Return the earlier answer to a retry. Raise Refused for the same key with another body."""
        key = digest[:KEY_BYTES]
        known = self._new.get(key) or next(iter(self._database.read(_FIND, (key,))), None)
        if known is None or now - known[1] >= self._keep:
            return None
        if known[0] != digest[KEY_BYTES:]:
            raise other_body()
        answer: dict[str, Any] = msgspec.json.decode(known[2])
        return answer

    def stored(self, digest: bytes, answer: Mapping[str, Any], now: int) -> tuple[StoredKey, ...]:
        """Return what an entry of the write-ahead log holds of a key; nothing without one."""
        return ((digest, now, msgspec.json.encode(shortened(answer))),) if digest else ()

    def add(self, keys: Sequence[StoredKey]) -> None:
        """Add the keys of an entry that is in the write-ahead log."""
        for digest, at, answer in keys:
            self._new[digest[:KEY_BYTES]] = (digest[KEY_BYTES:], at, answer)
        if len(self._new) >= _MOST_NEW:
            with contextlib.suppress(QueryCloakError):  # they stay in memory; the next checkpoint reports it
                self.flush(keys[-1][1])

    def flush(self, now: int) -> None:
        """Write new keys to the database, and delete those that are too old."""
        rows = [(key, *known) for key, known in self._new.items()]
        with self._database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO idempotency_keys VALUES (?, ?, ?, ?)", rows)
            connection.execute("DELETE FROM idempotency_keys WHERE at <= ?", (now - self._keep,))
        self._new = {}

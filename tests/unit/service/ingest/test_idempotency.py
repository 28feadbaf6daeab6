"""Idempotency keys: stored for a stated time, in memory or in the database, as hashes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from querycloak.errors import DiskFull, Refused
from querycloak.service.ingest import idempotency
from querycloak.service.ingest.idempotency import IdempotencyKeys
from querycloak.service.sinks.database import Database

SECOND = 1_000_000
ANSWER = {"accepted": 1, "skipped": {}}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "service.sqlite")
    yield made
    made.close()


def add(keys: IdempotencyKeys, name: str, now: int = 0, body: bytes = b"body") -> bytes:
    digest = keys.digest(name, body)
    keys.add(keys.stored(digest, ANSWER, now))
    return digest


@pytest.mark.parametrize("flushed", [False, True])
def test_a_key_is_found_until_its_time_is_over(database: Database, flushed: bool) -> None:
    keys = IdempotencyKeys(database, b"secret", keep_seconds=10)
    digest = add(keys, "a")
    if flushed:
        keys.flush(0)
        keys = IdempotencyKeys(database, b"secret", keep_seconds=10)
    assert keys.find(digest, 9 * SECOND) == ANSWER
    assert keys.find(digest, 10 * SECOND) is None
    assert keys.find(keys.digest("b", b"body"), 0) is None
    with pytest.raises(Refused, match="another body"):
        keys.find(keys.digest("a", b"other"), 0)


def test_old_keys_are_deleted(database: Database) -> None:
    keys = IdempotencyKeys(database, b"secret", keep_seconds=10)
    for second in range(20):
        add(keys, f"{second}", second * SECOND)
    keys.flush(20 * SECOND)
    assert database.read("SELECT count(*), min(at) FROM idempotency_keys") == [(9, 11 * SECOND)]


def test_many_new_keys_are_written_and_a_full_disk_loses_none(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "_MOST_NEW", 3)
    keys = IdempotencyKeys(database, b"secret", keep_seconds=10)
    with monkeypatch.context() as patch:
        patch.setattr(Database, "transaction", lambda self: (_ for _ in ()).throw(DiskFull("no room")))
        digests = [add(keys, f"{number}") for number in range(5)]
        with pytest.raises(DiskFull):
            keys.flush(0)
    assert database.read("SELECT count(*) FROM idempotency_keys") == [(0,)]
    assert all(keys.find(digest, 0) for digest in digests)
    add(keys, "5")
    assert database.read("SELECT count(*) FROM idempotency_keys") == [(6,)]
    assert all(keys.find(digest, 0) for digest in digests)


def test_no_key_and_no_body_is_in_the_database(database: Database, tmp_path: Path) -> None:
    keys = IdempotencyKeys(database, b"secret", keep_seconds=10)
    add(keys, "planted-key", body=b"planted-body")
    keys.flush(0)
    database.sync()
    assert not [path for path in tmp_path.iterdir() if b"planted" in path.read_bytes()]

"""Bytes are on disk before their name is, and before a caller goes on."""

from __future__ import annotations

import os

import pytest

from querycloak import formats, keys
from querycloak.ledger import Ledger
from querycloak.service.wal.wal import WriteAheadLog
from tests.support.logs import made_up


@pytest.fixture
def disk(monkeypatch):
    """Return what reached the disk, in order: the files that are synced and those that are renamed."""
    events = []
    sync, replace = os.fsync, os.replace

    def noted_sync(descriptor):
        status = os.fstat(descriptor)
        events.append(("sync", status.st_ino, status.st_size))
        sync(descriptor)

    def noted_replace(source, target, **more):
        status = os.stat(source)
        events.append(("rename", status.st_ino, status.st_size))
        replace(source, target, **more)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    return events


def assert_synced_first(events):
    renamed = [place for place, event in enumerate(events) if event[0] == "rename"]
    assert renamed
    for place in renamed:
        assert ("sync", *events[place][1:]) in events[:place], "a name comes before its bytes"


@pytest.mark.parametrize("name", ["log.tsv", "log.jsonl.gz", "log.csv.zst", "log.parquet", "log.ubi"])
def test_a_release_has_its_name_after_its_bytes(disk, tmp_path, name):
    formats.write(made_up(12, seed=4), tmp_path / name)
    assert_synced_first(disk)


def test_a_private_file_has_its_name_after_its_bytes_and_the_name_is_synced(disk, tmp_path):
    keys.write_private(tmp_path / "secret", b"content")
    assert_synced_first(disk)
    assert disk[-1][:2] == ("sync", tmp_path.stat().st_ino)


def test_a_drawn_secret_is_synced_before_it_is_used(disk, tmp_path):
    keys.Secret.load_or_create(tmp_path / "secret")
    written = (tmp_path / "secret").stat()
    assert ("sync", written.st_ino, written.st_size) in disk
    assert disk[-1][:2] == ("sync", tmp_path.stat().st_ino)


def test_an_entry_of_the_ledger_is_on_disk_when_append_returns(disk, tmp_path):
    ledger = Ledger(tmp_path / "state")
    for release in ("a", "b"):
        ledger.append({"source": "web", "release": release})
        written = ledger.path.stat()
        assert ("sync", written.st_ino, written.st_size) in disk


def test_a_file_of_the_write_ahead_log_has_its_name_after_its_bytes(disk, tmp_path):
    log = WriteAheadLog(tmp_path / "wal")
    log.open()
    log.append([b"entry"])
    log.close()
    assert_synced_first(disk)
    (place,) = (place for place, event in enumerate(disk) if event[0] == "rename")
    assert disk[place + 1][:2] == ("sync", (tmp_path / "wal").stat().st_ino)

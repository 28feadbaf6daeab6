"""What the tests of the journal share: making, opening and harming small ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from querycloak.service.wal.cipher import Cipher
from querycloak.service.wal.frames import FRAME_BYTES
from querycloak.service.wal.wal import WriteAheadLog

SECRET = b"planted zwieback cure"


@contextmanager
def opened(
    folder: Path, cipher: Cipher | None = None, segment_bytes: int = 64 << 20
) -> Iterator[WriteAheadLog]:
    journal = WriteAheadLog(folder, cipher, segment_bytes)
    journal.open()
    try:
        yield journal
    finally:
        journal.close()


def contents(folder: Path, after: int = 0, cipher: Cipher | None = None) -> list[tuple[int, bytes]]:
    with opened(folder, cipher) as journal:
        return list(journal.read_after(after))


def written(
    folder: Path,
    groups: Sequence[Sequence[bytes]],
    cipher: Cipher | None = None,
    segment_bytes: int = 64 << 20,
) -> list[Path]:
    """Append groups, close, and give the files."""
    with opened(folder, cipher, segment_bytes) as journal:
        for group in groups:
            journal.append(group)
    return files(folder)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.journal"))


def numbered(groups: Sequence[Sequence[bytes]]) -> list[tuple[int, bytes]]:
    return list(enumerate((payload for group in groups for payload in group), start=1))


def twin(folder: Path, name: str = "twin") -> Path:
    """Copy a journal, so that the copy can be harmed."""
    other = folder.with_name(name)
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(folder, other)
    return other


def without_last_mark(path: Path) -> None:
    """Take away the mark that a crash of the whole machine can lose."""
    os.truncate(path, path.stat().st_size - FRAME_BYTES)


def flipping(path: Path, step: int = 1) -> Iterator[int]:
    """Flip one bit of a file after the other, and put the file right again after each."""
    data = path.read_bytes()
    for bit in range(0, len(data) * 8, step):
        flip(path, bit)
        yield bit
        put(path, data)


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    put(path, data)


def put(path: Path, data: bytes) -> None:
    """Write in place: some file systems force a file that is emptied and written anew to the disk."""
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out syncs where thousands of journals are opened: these tests are about bytes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)

"""One file of frames while it is written: whole writes, one sync each, and a way back from a full disk."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from querycloak.service.wal.cipher import SALT_BYTES, Cipher
from querycloak.service.wal.disk import sync_folder, write_all
from querycloak.service.wal.frames import Header, Kind
from querycloak.service.wal.segments import Segment

#: Added to the name of a file that is not complete; such files are of no use after a crash.
UNFINISHED: Final = ".new"


class Writer:
    """Appends to one file; whatever fails leaves `segment.end` where it was."""

    def __init__(self, segment: Segment, descriptor: int) -> None:
        self.segment = segment
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path, magic: bytes, first: int, cipher: Cipher | None) -> Writer:
        """Begin a file under an unfinished name."""
        salt = secrets.token_bytes(SALT_BYTES)
        sealer = cipher.for_file(salt) if cipher else None
        header = Header(magic, first, salt, sealer.key_check) if sealer else Header(magic, first, salt)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(_unfinished(path), flags, 0o600)
        writer = cls(Segment(path, header, sealer), descriptor)
        try:
            write_all(descriptor, header.pack(), 0)
        except OSError:
            writer.discard()
            raise
        return writer

    @classmethod
    def reopen(cls, segment: Segment) -> Writer:
        """Take up a file that was checked, to mend it or to close it off."""
        return cls(segment, os.open(segment.path, os.O_RDWR))

    def publish(self) -> None:
        """Give the file its name, once its content is durable; the name is durable after this too."""
        path = self.segment.path
        try:
            os.fsync(self._descriptor)
            _unfinished(path).replace(path)
            sync_folder(path.parent)
        except OSError:
            self.discard()
            raise

    def discard(self) -> None:
        """Give up an unfinished file."""
        self.close()
        with contextlib.suppress(OSError):
            _unfinished(self.segment.path).unlink()

    def append(self, payloads: Sequence[bytes], sync: bool = True) -> None:
        """Write frames in one go and make them durable with one sync."""
        segment = self.segment
        parts: list[bytes] = []
        for number, payload in enumerate(payloads, start=segment.last + 1):
            stored = segment.sealer.seal(number, payload, segment.header.magic) if segment.sealer else payload
            parts += (segment.coder.pack(Kind.ENTRY, number, segment.durable, stored), stored)
        data = b"".join(parts)
        write_all(self._descriptor, data, segment.end)
        if sync:
            os.fdatasync(self._descriptor)
        segment.end += len(data)
        segment.last += len(payloads)
        segment.durable = segment.end if sync else segment.durable

    def mark(self, kind: Kind) -> None:
        """Write down that all frames are durable; call it only when they are. The mark itself is not, yet."""
        segment = self.segment
        data = segment.coder.pack(kind, segment.last, segment.durable)
        write_all(self._descriptor, data, segment.end)
        segment.end += len(data)

    def seal(self) -> None:
        """Mark the last write as durable, without a sync: if the mark is lost, only a diagnosis is lost.

        A mark that does not fit is left out. What it leaves behind is shorter than the next frame.
        """
        with contextlib.suppress(OSError):
            self.mark(Kind.SEALED)

    def cut(self) -> None:
        """Take away what lies after the last whole write, for good."""
        os.ftruncate(self._descriptor, self.segment.end)
        self.sync()

    def mend(self) -> None:
        """Make a file that a crash left behind durable as it was read.

        What no mark vouches for may lie in the system's memory only; after a failed sync the system even
        takes it for written. Writing the same bytes once more makes the sync mean something.
        """
        segment = self.segment
        os.ftruncate(self._descriptor, segment.end)
        doubtful = os.pread(self._descriptor, segment.end - segment.durable, segment.durable)
        write_all(self._descriptor, doubtful, segment.durable)
        self.sync()
        segment.torn, segment.durable = 0, segment.end

    def sync(self) -> None:
        """Make all of the file durable, its length too."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Let the file go."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + UNFINISHED)

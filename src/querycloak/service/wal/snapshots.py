"""The state of the stream at one place of the journal, so that what lies before it can be forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from querycloak.errors import UsageError
from querycloak.service.wal import disk
from querycloak.service.wal.cipher import Cipher
from querycloak.service.wal.frames import Kind
from querycloak.service.wal.segments import Segment, damaged
from querycloak.service.wal.writing import UNFINISHED, Writer

_MAGIC: Final = b"QCLOAKS\n"
_SUFFIX: Final = ".snapshot"
_PIECE_BYTES: Final = 64 << 20


class Snapshots:
    """A folder that holds the newest snapshot: a file of frames, in pieces, closed by a mark."""

    def __init__(self, folder: Path, cipher: Cipher | None = None) -> None:
        self.folder = folder
        self._cipher = cipher

    def save(self, position: int, state: bytes) -> None:
        """Keep a state; only when it is durable under its name are the older ones removed."""
        if any(_position(path) > position for path in self._paths()):
            raise UsageError(f"there is a snapshot later than {position} already")
        try:
            disk.private_folder(self.folder)
            self._write(position, state)
            self._clear(position)
        except OSError as error:
            raise disk.failure(error, self.folder) from None

    def newest(self) -> tuple[int, bytes] | None:
        """Give the newest snapshot's place and state; refuse a damaged one, for an older one would lie."""
        paths = self._paths()
        if not paths:
            return None
        segment = Segment.load(paths[-1], _MAGIC, self._cipher)
        if segment.first != _position(paths[-1]):
            what = f"the file is of place {segment.first}; its name says otherwise"
            raise damaged(segment.path, 0, what)
        segment.check()
        if segment.torn or not segment.sealed:
            raise damaged(segment.path, segment.end, "the snapshot is damaged or cut off here")
        return segment.first, b"".join(piece for _, piece in segment.entries())

    def _write(self, position: int, state: bytes) -> None:
        writer = Writer.create(self.folder / f"{position:020d}{_SUFFIX}", _MAGIC, position, self._cipher)
        try:
            for piece in _pieces(state):
                writer.append([piece], sync=False)
            writer.mark(Kind.SEALED)
        except OSError:
            writer.discard()
            raise
        writer.publish()
        writer.close()

    def _clear(self, position: int) -> None:
        """Remove what is older, and what a crash left unfinished."""
        old = [path for path in self._paths() if _position(path) < position]
        for path in [*old, *self.folder.glob(f"*{_SUFFIX}{UNFINISHED}")]:
            path.unlink()
        disk.sync_folder(self.folder)

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_SUFFIX}"))


def _pieces(state: bytes) -> Iterator[bytes]:
    """Cut a state of any size into frames; an empty one is one empty frame."""
    for start in range(0, max(len(state), 1), _PIECE_BYTES):
        yield state[start : start + _PIECE_BYTES]


def _position(path: Path) -> int:
    if not path.stem.isdecimal():
        raise damaged(path, 0, "this is not the name of a snapshot")
    return int(path.stem)

"""Snapshots: the state of the stream at one number of the write-ahead log."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

from querycloak._version import __version__
from querycloak.engines import state_codec
from querycloak.errors import DataError, Refused, UsageError
from querycloak.files import private_folder, sync_folder
from querycloak.keys import derive
from querycloak.service.settings import Setup
from querycloak.service.stream.stream import Stream
from querycloak.service.wal.cipher import Cipher
from querycloak.service.wal.frames import Kind
from querycloak.service.wal.segment import UNFINISHED, SegmentReader, SegmentWriter, damaged
from querycloak.service.wal.wal import TOGETHER, write_failure

_MAGIC: Final = b"QCLOAKS\n"
_SUFFIX: Final = ".snapshot"
_PIECE_BYTES: Final = 64 << 20


class Snapshots:
    """A folder that holds the newest snapshot: a file of frames, in pieces, closed by a mark."""

    def __init__(self, folder: Path, cipher: Cipher | None = None) -> None:
        self.folder = folder
        self._cipher = cipher

    def save(self, position: int, state: bytes) -> None:
        """Save a state; older ones are removed when it is durable under its name."""
        if any(_position(path) > position for path in self._paths()):
            raise UsageError(f"there is a snapshot later than {position} already")
        try:
            private_folder(self.folder)
            self._write(position, state)
            self._clear(position)
        except OSError as error:
            raise write_failure(error, self.folder) from None

    def newest(self) -> tuple[int, bytes] | None:
        """Return the number and state of the newest snapshot. Raise DataError if it is damaged."""
        paths = self._paths()
        if not paths:
            return None
        segment = SegmentReader.load(paths[-1], _MAGIC, self._cipher)
        if segment.first != _position(paths[-1]):
            what = f"the file is of place {segment.first}; its name says otherwise"
            raise damaged(segment.path, 0, what)
        segment.check()
        if segment.torn or not segment.sealed:
            raise damaged(segment.path, segment.end, "the snapshot is damaged or cut off here")
        return segment.first, b"".join(piece for _, piece in segment.entries())

    def _write(self, position: int, state: bytes) -> None:
        writer = SegmentWriter.create(
            self.folder / f"{position:020d}{_SUFFIX}", _MAGIC, position, self._cipher
        )
        try:
            for start in range(0, max(len(state), 1), _PIECE_BYTES):  # an empty state is one empty frame
                writer.append([state[start : start + _PIECE_BYTES]], sync=False)
            writer.mark(Kind.SEALED)
        except OSError:
            writer.discard()
            raise
        writer.publish()
        writer.close()

    def _clear(self, position: int) -> None:
        """Remove older snapshots, and unfinished ones that a crash left."""
        old = [path for path in self._paths() if _position(path) < position]
        for path in [*old, *self.folder.glob(f"*{_SUFFIX}{UNFINISHED}")]:
            path.unlink()
        sync_folder(self.folder)

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_SUFFIX}"))


def _position(path: Path) -> int:
    if not path.stem.isdecimal():
        raise damaged(path, 0, "this is not the name of a snapshot")
    return int(path.stem)


class StreamSnapshots:
    """Snapshots of a stream, with the settings and the secret that they were made with."""

    def __init__(self, snapshots: Snapshots, setup: Setup, secret: bytes) -> None:
        self._snapshots = snapshots
        self._secret = derive(secret, "whose state this is").hex()
        self._methods = [[stage.method, stage.settings.as_dict()] for stage in setup.stages]
        #: What can change from start to start, but not while entries are to be replayed.
        chosen = setup.settings
        self._readers = [__version__, chosen.classify, _digest(chosen.taxonomy), chosen.click_seconds]

    def save(self, position: int, stream: Stream) -> None:
        """Save the stream as of entry `position`."""
        made_by: dict[str, Any] = {"methods": self._methods, "readers": self._readers, "secret": self._secret}
        self._snapshots.save(position, state_codec.dump(stream.snapshot() | made_by))

    def restore(self, stream: Stream, wal: int) -> int:
        """Restore the newest snapshot; return its position.

        The first start saves an empty stream, so that later ones can compare their settings.
        """
        found = self._snapshots.newest()
        if found is None:
            if wal:
                raise DataError("the write-ahead log has entries, but its snapshot is missing", hint=TOGETHER)
            self.save(0, stream)
            return 0
        position, data = found
        parts = state_codec.load(data)
        self._check(parts, position, wal)
        stream.restore(parts)
        return position

    def _check(self, parts: dict[str, Any], position: int, wal: int) -> None:
        if parts["secret"] != self._secret:
            raise Refused(
                "this state was made with another secret or seed, and nobody in it could be found again",
                hint="put the secret back that was beside it, or use another `--state` folder",
            )
        if parts["methods"] != self._methods:
            raise Refused(
                "this state was made with other methods or settings",
                hint="use the same ones, or another `--state` folder",
            )
        if wal < position:
            raise DataError("the write-ahead log ends before its own snapshot", hint=TOGETHER)
        if parts["readers"] != self._readers and wal > position:
            raise Refused(
                f"version {parts['readers'][0]} left work to do in this state, or was set up otherwise",
                hint="start it as it was and stop it once, so that it can finish",
            )


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""
    except OSError as error:
        raise UsageError(f"the taxonomy cannot be read: {error.strerror}") from None

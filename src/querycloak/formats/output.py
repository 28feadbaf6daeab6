"""Outputs that get their name only when they are complete, and `Writer`, which fills them with records."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import shutil
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, Self

import polars as pl

from querycloak import temporary_files
from querycloak.errors import UsageError, disk_errors
from querycloak.files import check_outputs, sync_folder
from querycloak.formats import registry
from querycloak.formats.layout import Layout
from querycloak.formats.source import display_name
from querycloak.log import Log
from querycloak.temporary_files import TemporaryPath

_LEVELS: Final = {"gz": 6, "zst": 3}
#: Rows encoded at a time: enough to be fast, few enough to stay small.
_SLICE: Final = 200_000


class OutputFile:
    """Where an encoder writes: memory, or in subclasses a file, or a folder of files."""

    fault: OSError | None = None  # why a write failed, for encoders whose library hides it

    def __init__(self) -> None:
        self._file: IO[bytes] = io.BytesIO()
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Add bytes, before compression."""
        self._hash.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Do nothing, for libraries that flush files: `finish` brings everything to disk."""

    def file(self, name: str) -> OutputFile:
        """Return a file of an output that is a folder, with the suffix of the compression."""
        raise UsageError("the output is one file, not a folder", hint="name a folder")

    def take_over(self, path: Path) -> Path:
        """Move what is written so far to a private file, and start again."""
        self._file.seek(0)
        with path.open("wb") as file:
            shutil.copyfileobj(self._file, file)
        path.chmod(0o600)
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.sha256()
        return path

    @property
    def temporary(self) -> Path | bytes:
        """The unfinished output: a path, or the bytes."""
        self._file.seek(0)
        return self._file.read()

    @property
    def sha256(self) -> str:
        """The hash of the finished bytes."""
        return self._hash.hexdigest()

    def finish(self) -> None:
        """Complete the bytes and bring them to disk; can be called twice."""

    def commit(self) -> None:
        """Rename the output to its final name."""

    def discard(self) -> None:
        """Delete the unfinished output."""


class Encoder(ABC):
    """Turns records into the bytes of a format, and writes them to an `OutputFile`."""

    @abstractmethod
    def write(self, frame: pl.DataFrame) -> None:
        """Write the next records: a frame with canonical names."""

    def finish(self) -> None:  # noqa: B027 - many formats need no end
        """Write what completes the format."""

    def abandon(self) -> None:  # noqa: B027
        """Stop without completing the format."""


class TextEncoder(Encoder):
    """Encoder of a format whose rows can be encoded one after the other.

    `encode` takes records and the number of the first one in the output, and returns their bytes.
    """

    def __init__(
        self, output: OutputFile, encode: Callable[[pl.DataFrame, int], bytes], header: bytes = b""
    ) -> None:
        self._output, self._encode, self._rows = output, encode, 0
        output.write(header)

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next records."""
        for piece in frame.iter_slices(_SLICE):
            self._output.write(self._encode(piece, self._rows))
            self._rows += piece.height


class _NamedOutput(OutputFile):
    """An output that is hidden and private while it is written, and gets its name on `commit`."""

    def __init__(
        self,
        path: str | Path,
        *,
        compression: str = "",
        private: bool = False,
        never_replace: Iterable[object] = (),
    ) -> None:
        super().__init__()
        check_outputs([path], never_replace)
        self._target, self._compression, self._private = path, compression, private
        self._never_replace = [*never_replace]
        self._unfinished, self._finished = self._create(), False
        self._temporary = self._unfinished.path

    def _create(self) -> TemporaryPath:
        """Create the hidden file or folder."""
        raise NotImplementedError

    @property
    def temporary(self) -> Path:
        """The unfinished file or folder."""
        return self._temporary

    def _rename(self, rights: int) -> None:
        """Rename the output; a link or a device that came to its name meanwhile is not replaced either."""
        check_outputs([self._target], self._never_replace)
        self._grant(rights)
        self._unfinished.rename(Path(self._target))

    def _grant(self, rights: int) -> None:
        """Set the usual rights of the output, unless it is private."""
        if not self._private:
            mask = os.umask(0o077)
            os.umask(mask)
            self._temporary.chmod(rights & ~mask)


class AtomicFile(_NamedOutput):
    """A file whose bytes are compressed and hashed on the way. `-` is standard output."""

    def _create(self) -> TemporaryPath:
        """Create the hidden file; standard output is collected in the folder for temporary files."""
        path, self._compressor = Path(self._target), _compressor(self._compression)
        if str(path) == "-":
            path = temporary_files.default_folder() / "standard-output"
        elif path.is_dir():
            raise UsageError(f"{display_name(path)} is a folder", hint="name a file, or choose --format ubi")
        try:
            unfinished = temporary_files.new_unfinished(path)
        except OSError as error:
            raise UsageError(f"{display_name(path)} cannot be written: {error.strerror}") from None
        self._file = unfinished.path.open("r+b")
        return unfinished

    def write(self, data: bytes) -> int:
        """Add bytes, before compression."""
        self._store(self._compressor.compress(data) if self._compressor else data)
        return len(data)

    def finish(self) -> None:
        """Complete the bytes and bring them to disk; can be called twice."""
        if self._finished:
            return
        self._finished = True
        if self._compressor:
            self._store(self._compressor.flush())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def commit(self) -> None:
        """Rename the file to its final name with the usual rights, or copy it to standard output."""
        self.finish()
        if str(self._target) == "-":
            with self._temporary.open("rb") as finished:
                shutil.copyfileobj(finished, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            self._unfinished.remove()
            return
        self._rename(0o666)

    def discard(self) -> None:
        """Delete the unfinished file."""
        self._finished = True
        with suppress(OSError):  # what is left in its buffer may not fit on the disk
            self._file.close()
        self._unfinished.remove()

    def _store(self, data: bytes) -> None:
        try:
            super().write(data)
        except OSError as error:
            self.fault = error
            raise


class AtomicFolder(_NamedOutput):
    """A folder of files that gets its name by one rename.

    An earlier folder of that name is renamed first, to `NAME.replaced-…`; nothing in it is deleted.
    """

    def _create(self) -> TemporaryPath:
        if str(self._target) == "-":
            raise UsageError("standard output cannot hold a folder", hint="name a folder")
        if Path(self._target).is_file():
            raise UsageError(f"{display_name(self._target)} is a file, and the output is a folder")
        self._files: dict[str, AtomicFile] = {}
        return temporary_files.new_unfinished(Path(self._target), folder=True)

    def write(self, data: bytes) -> int:
        """Raise UsageError: only the files of a folder have bytes."""
        raise UsageError("the output is a folder, and has no bytes of its own")

    def file(self, name: str) -> OutputFile:
        """Return a file of the folder, under its name or that of its compression."""
        path = self._temporary / (f"{name}.{self._compression}" if self._compression else name)
        self._files[path.name] = AtomicFile(path, compression=self._compression, private=self._private)
        return self._files[path.name]

    @property
    def sha256(self) -> str:
        """The hash of the names and hashes of all files."""
        return _folder_hash({name: file.sha256 for name, file in self._files.items()})

    def finish(self) -> None:
        """Complete the files; the folder is still hidden and private."""
        if not self._finished:
            self._finished = True
            for file in self._files.values():
                file.commit()
            sync_folder(self._temporary)

    def commit(self) -> None:
        """Rename the folder to its final name."""
        self.finish()
        target = Path(self._target)
        if target.exists():
            check_outputs([target], self._never_replace)
            target.rename(target.with_name(f"{target.name}.replaced-{secrets.token_hex(4)}"))
        self._rename(0o777)
        sync_folder(target.absolute().parent)

    def discard(self) -> None:
        """Delete the unfinished folder."""
        for file in self._files.values():
            file.discard()
        self._unfinished.remove()


class Writer:
    """Writes records to a file or folder that exists only after `commit`; else nothing is left.

    Columns of the layout that a frame lacks are written empty; columns of a frame that the layout
    lacks are not written. With `private`, the file stays readable for its owner only. Paths in
    `never_replace` are refused as outputs. Without a path, the output stays in memory (`temporary_path`).
    """

    def __init__(
        self,
        path: str | Path | None,
        layout: Layout,
        *,
        private: bool = False,
        never_replace: Iterable[object] = (),
    ) -> None:
        self.layout, self._done = layout, False
        self._name = "standard output" if path == "-" else display_name(path or b"")
        own = registry.get(layout.format)
        if path is None:
            self._output = OutputFile()
        else:
            if own.traits.folder and Path(path).is_dir():
                own.check_folder(Path(path))
            kind = AtomicFolder if own.traits.folder else AtomicFile
            self._output = kind(
                path, compression=layout.compression, private=private, never_replace=never_replace
            )
        try:
            with disk_errors(self._name):
                self._encoder = own.encoder(layout, self._output)
        except BaseException:
            self._output.discard()
            raise

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next records: a frame with canonical names."""
        if frame.height:
            with disk_errors(self._name):
                self._encoder.write(frame)

    def close(self) -> None:
        """Complete the bytes, still under the temporary name."""
        with disk_errors(self._name):
            self._encoder.finish()
            self._output.finish()

    def commit(self) -> None:
        """Complete the bytes and rename the output to its final name."""
        self.close()
        with disk_errors(self._name):
            self._output.commit()
        self._done = True

    @property
    def sha256(self) -> str:
        """The hash of the finished bytes, compressed; known after `close`."""
        return self._output.sha256

    @property
    def temporary_path(self) -> Path | bytes:
        """The file, folder or bytes that an audit can read after `close`, until `commit`."""
        return self._output.temporary

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        if not self._done:
            self._encoder.abandon()
            self._output.discard()


def write(
    log: Log | pl.DataFrame,
    path: str | Path,
    layout: Layout | None = None,
    *,
    private: bool = False,
    never_replace: Iterable[object] = (),
) -> str:
    """Write a whole log, with the look of its input where the path allows; return the SHA-256."""
    frame = log.frame if isinstance(log, Log) else log
    if layout is None:
        like = log.layout if isinstance(log, Log) else None
        layout = Layout.for_output(path, like=like, columns=[name for name in frame.columns if name != "row"])
    with Writer(path, layout, private=private, never_replace=never_replace) as writer:
        writer.write(frame)
        writer.commit()
        return writer.sha256


def _compressor(compression: str) -> Any:
    """Return a compressor whose bytes depend on the content alone: no time and no name in the header."""
    if compression == "gz":
        return zlib.compressobj(_LEVELS["gz"], zlib.DEFLATED, 31)
    if compression == "zst":
        import zstandard

        return zstandard.ZstdCompressor(level=_LEVELS["zst"], write_checksum=True).compressobj()
    return None


def sha256(path: str | Path) -> str:
    """Return the hash of a file's bytes; of a folder, the hash of its files' names and hashes."""
    target = Path(path)
    if not target.is_dir():
        with open(target, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return _folder_hash({part.name: sha256(part) for part in target.iterdir() if part.is_file()})


def _folder_hash(hashes: dict[str, str]) -> str:
    """Return the hash of the sorted lines `hash, two spaces, name`, as sha256sum prints them."""
    lines = "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))
    return hashlib.sha256(lines.encode()).hexdigest()

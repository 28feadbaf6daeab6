"""Outputs that get their name only when they are complete, and `Writer`, which fills them with records."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import shutil
import sys
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import polars as pl

from querycloak.errors import UsageError
from querycloak.files import check_outputs
from querycloak.formats import registry
from querycloak.formats.layout import Layout
from querycloak.formats.source import display_name
from querycloak.log import Log

_LEVELS: Final = {"gz": 6, "zst": 3}
#: Rows encoded at a time: enough to be fast, few enough to stay small.
_SLICE: Final = 200_000


class OutputFile(ABC):
    """Where an encoder writes: a file, a folder of files, or memory."""

    fault: OSError | None = None  # why a write failed, for encoders whose library hides it

    def write(self, data: bytes) -> int:
        """Add bytes, before compression."""
        raise UsageError("the output is a folder, and has no bytes of its own")

    def flush(self) -> None:  # noqa: B027 - libraries call it on files
        """Do nothing: `finish` brings everything to disk."""

    def file(self, name: str) -> OutputFile:
        """Return a file of an output that is a folder, with the suffix of the compression."""
        raise UsageError("the output is one file, not a folder", hint="name a folder")

    def take_over(self, path: Path) -> Path:
        """Move what is written so far to `path`, and start again."""
        raise UsageError("the output is a folder, and has no bytes of its own")

    @property
    @abstractmethod
    def temporary(self) -> Path | bytes:
        """The unfinished output: a path, or the bytes."""

    @property
    @abstractmethod
    def sha256(self) -> str:
        """The hash of the finished bytes."""

    def finish(self) -> None:  # noqa: B027 - memory has nothing to do
        """Complete the bytes and bring them to disk; can be called twice."""

    def commit(self) -> None:  # noqa: B027
        """Rename the output to its final name."""

    def discard(self) -> None:  # noqa: B027
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


class AtomicFile(OutputFile):
    """A file that is hidden and private while it is written, and gets its name on `commit`.

    Bytes are compressed and hashed on the way. `-` is standard output.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        compression: str = "",
        private: bool = False,
        never_replace: Iterable[object] = (),
    ) -> None:
        check_outputs([path], never_replace)
        self.path, self._private = path, private
        self._temporary, self._file = _create(path)
        self._compressor = _compressor(compression)
        self._hash = hashlib.sha256()
        self._open = True

    @property
    def temporary(self) -> Path:
        """The unfinished file."""
        return self._temporary

    def write(self, data: bytes) -> int:
        """Add bytes, before compression."""
        self._store(self._compressor.compress(data) if self._compressor else data)
        return len(data)

    def take_over(self, path: Path) -> Path:
        """Move what is written so far to `path`, and start again."""
        self._file.flush()
        shutil.copyfile(self.temporary, path)
        path.chmod(0o600)
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.sha256()
        return path

    @property
    def sha256(self) -> str:
        """The hash of the finished bytes."""
        return self._hash.hexdigest()

    def finish(self) -> None:
        """Complete the bytes and bring them to disk; can be called twice."""
        if not self._open:
            return
        self._open = False
        if self._compressor:
            self._store(self._compressor.flush())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def commit(self) -> None:
        """Rename the file to its final name with the usual rights, or copy it to standard output."""
        self.finish()
        if str(self.path) == "-":
            with open(self.temporary, "rb") as finished:
                shutil.copyfileobj(finished, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            self.temporary.unlink()
            return
        if not self._private:
            self.temporary.chmod(0o666 & ~_umask())
        os.replace(self.temporary, self.path)

    def discard(self) -> None:
        """Delete the unfinished file."""
        self._open = False
        self._file.close()
        self.temporary.unlink(missing_ok=True)

    def _store(self, data: bytes) -> None:
        self._hash.update(data)
        try:
            self._file.write(data)
        except OSError as error:
            self.fault = error
            raise


class AtomicFolder(OutputFile):
    """A folder of files that gets its name on `commit`, by one rename.

    An earlier folder of that name is renamed first, to `NAME.replaced-…`; nothing in it is deleted.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        compression: str = "",
        private: bool = False,
        never_replace: Iterable[object] = (),
    ) -> None:
        if str(path) == "-":
            raise UsageError("standard output cannot hold a folder", hint="name a folder")
        check_outputs([path], never_replace)
        self._target, self._private, self._compression = Path(path), private, compression
        if self._target.exists() and not self._target.is_dir():
            raise UsageError(f"{display_name(path)} is a file, and the output is a folder")
        self._temporary = temporary_name(path)
        self._temporary.mkdir(mode=0o700)
        self._files: dict[str, AtomicFile] = {}
        self._finished = False

    @property
    def temporary(self) -> Path:
        """The unfinished folder."""
        return self._temporary

    def file(self, name: str) -> OutputFile:
        """Return a file of the folder, under its name or that of its compression."""
        ending = f".{self._compression}" if self._compression else ""
        path = self.temporary / (name + ending)
        self._files[path.name] = AtomicFile(path, compression=self._compression, private=self._private)
        return self._files[path.name]

    @property
    def sha256(self) -> str:
        """The hash of the names and hashes of all files."""
        return folder_hash({name: file.sha256 for name, file in self._files.items()})

    def finish(self) -> None:
        """Complete the files; the folder is still hidden and private."""
        if not self._finished:
            self._finished = True
            for file in self._files.values():
                file.commit()
            _sync(self.temporary)

    def commit(self) -> None:
        """Rename the folder to its final name."""
        self.finish()
        if not self._private:
            self.temporary.chmod(0o777 & ~_umask())
        if self._target.exists():
            self._target.rename(
                self._target.with_name(f"{self._target.name}.replaced-{secrets.token_hex(4)}")
            )
        self.temporary.rename(self._target)
        _sync(self._target.absolute().parent)

    def discard(self) -> None:
        """Delete the unfinished folder."""
        for file in self._files.values():
            file.discard()
        shutil.rmtree(self.temporary, ignore_errors=True)


class MemoryFile(OutputFile):
    """An output that stays in memory; `temporary` is its bytes."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()

    def write(self, data: bytes) -> int:
        """Add bytes."""
        return self._buffer.write(data)

    def take_over(self, path: Path) -> Path:
        """Move what is written so far to a file, and start again."""
        path.write_bytes(self._buffer.getvalue())
        path.chmod(0o600)
        self._buffer = io.BytesIO()
        return path

    @property
    def temporary(self) -> bytes:
        """The bytes written so far."""
        return self._buffer.getvalue()

    @property
    def sha256(self) -> str:
        """The hash of the bytes."""
        return hashlib.sha256(self._buffer.getbuffer()).hexdigest()


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
        self.layout = layout
        self._output: OutputFile = _output(path, layout, private, never_replace)
        self._done = False
        try:
            self._encoder = registry.get(layout.format).encoder(layout, self._output)
        except BaseException:
            self._output.discard()
            raise

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next records: a frame with canonical names."""
        if frame.height:
            self._encoder.write(frame)

    def close(self) -> None:
        """Complete the bytes, still under the temporary name."""
        self._encoder.finish()
        self._output.finish()

    def commit(self) -> None:
        """Complete the bytes and rename the output to its final name."""
        self.close()
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._done:
            self._encoder.abandon()
            self._output.discard()


def _output(
    path: str | Path | None, layout: Layout, private: bool, never_replace: Iterable[object]
) -> OutputFile:
    if path is None:
        return MemoryFile()
    own = registry.get(layout.format)
    if own.traits.folder:
        if Path(path).is_dir():
            own.check_folder(Path(path))
        return AtomicFolder(
            path, compression=layout.compression, private=private, never_replace=never_replace
        )
    return AtomicFile(path, compression=layout.compression, private=private, never_replace=never_replace)


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


def temporary_name(path: str | Path) -> Path:
    """Return a random hidden name beside the target."""
    target = Path(path)
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.unfinished")


def _create(path: str | Path) -> tuple[Path, IO[bytes]]:
    """Create the hidden file; standard output is collected in the system's temporary folder."""
    if str(path) == "-":
        handle, name = tempfile.mkstemp(suffix=".unfinished")  # mkstemp gives mode 0600
        return Path(name), os.fdopen(handle, "wb")
    if Path(path).is_dir():
        raise UsageError(f"{display_name(path)} is a folder", hint="name a file, or choose --format ubi")
    temporary = temporary_name(path)
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageError(f"{display_name(path)} cannot be written: {error.strerror}") from None
    return temporary, os.fdopen(handle, "wb")


def _compressor(compression: str) -> Any:
    """Return a compressor whose bytes depend on the content alone: no time and no name in the header."""
    if compression == "gz":
        return zlib.compressobj(_LEVELS["gz"], zlib.DEFLATED, 31)
    if compression == "zst":
        import zstandard

        return zstandard.ZstdCompressor(level=_LEVELS["zst"], write_checksum=True).compressobj()
    return None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync(folder: Path) -> None:
    """Bring the names in a folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: str | Path) -> str:
    """Return the hash of a file's bytes; of a folder, the hash of its files' names and hashes."""
    target = Path(path)
    if not target.is_dir():
        with open(target, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return folder_hash({part.name: sha256(part) for part in target.iterdir() if part.is_file()})


def folder_hash(hashes: dict[str, str]) -> str:
    """Return the hash of the sorted lines `hash, two spaces, name`, as sha256sum prints them."""
    lines = "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))
    return hashlib.sha256(lines.encode()).hexdigest()

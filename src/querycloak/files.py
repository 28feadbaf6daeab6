"""Files for every package: locks, decompression, durable names, and the check of outputs."""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Self, TypeGuard

from querycloak.errors import UsageError

#: Compressions by how a file begins, and by how its name ends.
_MAGIC: Final = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
_SUFFIXES: Final = {".gz": "gz", ".zst": "zst"}


class DamagedFile(Exception):
    """Compressed bytes end too early (`truncated`) or are invalid (`damaged`)."""


def compression_of(start: bytes) -> str:
    """Return the compression of a file by its first bytes: `gz`, `zst` or none."""
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), "")


def split_compression(name: str) -> tuple[str, str]:
    """Split a file name into the name without the suffix of a compression, and the compression."""
    compression = _SUFFIXES.get(Path(name).suffix.lower(), "")
    return (name[: -len(Path(name).suffix)], compression) if compression else (name, "")


def decompress(start: bytes, more: Callable[[], bytes], compression: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of `start` and what `more` returns until it returns nothing.

    A file can be several compressed parts, one after the other. Raise DamagedFile.
    """
    part, piece = _decompressor(compression), start
    while True:
        piece = piece or more()
        if not piece:
            if part.eof:
                return
            raise DamagedFile("truncated")
        if part.eof:
            part = _decompressor(compression)
        try:
            plain = part.decompress(piece)
        except Exception:  # zlib.error or ZstdError: both mean that the bytes are damaged
            raise DamagedFile("damaged") from None
        piece = part.unused_data if part.eof else b""
        yield plain


def _decompressor(compression: str) -> Any:
    if compression == "gz":
        return zlib.decompressobj(wbits=31)
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


def check_outputs(outputs: Iterable[str | Path | None], inputs: Iterable[object] = ()) -> None:
    """Raise UsageError if an output would replace an input, another output or a special file.

    An existing folder is replaced as a whole, and so is what it contains. None, `-` (standard input or
    output) and inputs that are no paths are ignored. Paths are compared after links are resolved.
    """
    read, written = [Path(one).resolve() for one in inputs if _is_path(one)], list[Path]()
    for output in filter(_is_path, outputs):
        path = Path(output)
        if _is_special(path):
            raise UsageError(
                f"the output `{path.name}` is a device or a pipe, which a file would replace",
                hint="use `-` for standard output",
            )
        path = path.resolve()
        if any(_replaces(path, other) for other in read):
            raise UsageError(
                f"the output `{path.name}` would replace an input", hint="use another name for the output"
            )
        if any(_replaces(path, other) or _replaces(other, path) for other in written):
            raise UsageError(
                f"the output `{path.name}` would replace another output", hint="rename one of them"
            )
        written.append(path)


def _is_special(path: Path) -> bool:
    """Check for a device, a pipe or a socket, and for a name of one: `/dev/stdout` can be any file."""
    folders = path.absolute().parents
    memory = Path("/dev/shm")  # noqa: S108 - a file system like others
    if memory not in folders and (Path("/dev") in folders or Path("/proc") in folders):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _is_path(given: object) -> TypeGuard[str | Path]:
    return isinstance(given, str | Path) and str(given) != "-"


def _replaces(output: Path, other: Path) -> bool:
    """Check whether writing `output` changes `other`: the same file, a file in it, or a part of it."""
    if output == other or (output.exists() and other in output.parents) or output in other.parents:
        return True
    return output.exists() and other.exists() and output.samefile(other)


class FolderLock:
    """The exclusive lock of a folder, or of one thing in it, until `release` or the end of the process.

    `path` is the lock's file. Raise BlockingIOError if another holder has it, or wait for it with `wait`.
    """

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.release()


def private_folder(path: Path) -> None:
    """Create a folder, and missing ones above it, for the owner alone."""
    if not path.is_dir():
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable: a sync of a file does not include its name."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes, at: int) -> None:
    """Write all bytes at a position; the system may write fewer in one call."""
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, at)
        left, at = left[written:], at + written

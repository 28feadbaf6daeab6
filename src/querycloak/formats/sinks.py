"""Where bytes of an output go: a hidden file that gets its name only when all is well."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import shutil
import sys
import tempfile
import zlib
from pathlib import Path
from typing import IO, Any, Final

from querycloak.errors import UsageError
from querycloak.formats.streams import shown

_LEVELS: Final = {"gz": 6, "zst": 3}


class Sink:
    """A file in the making: packs what is written, hashes what lands, and is private until it is done."""

    def __init__(self, path: str | Path, compression: str = "", private: bool = False) -> None:
        self.path, self._private = path, private
        self.temporary, self._file = _create(path)
        self._packer = _packer(compression)
        self._hash = hashlib.sha256()
        self._open = True
        self.fault: OSError | None = None

    def write(self, data: bytes) -> int:
        """Take the next bytes, before packing."""
        self._land(self._packer.compress(data) if self._packer else data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: a writer of files may call it, and `finish` brings everything to disk."""

    def moved_to(self, path: Path) -> Path:
        """Put what is written so far elsewhere, and begin anew."""
        self._file.flush()
        shutil.copyfile(self.temporary, path)
        path.chmod(0o600)
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.sha256()
        return path

    def finish(self) -> None:
        """Complete the bytes and bring them to disk; may be called twice."""
        if not self._open:
            return
        self._open = False
        if self._packer:
            self._land(self._packer.flush())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    @property
    def sha256(self) -> str:
        """The hash of the finished bytes."""
        return self._hash.hexdigest()

    def commit(self) -> None:
        """Give the file its name and the usual rights, or pour it out on standard output."""
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
        """Leave nothing behind."""
        self._open = False
        self._file.close()
        self.temporary.unlink(missing_ok=True)

    def _land(self, data: bytes) -> None:
        self._hash.update(data)
        try:
            self._file.write(data)
        except OSError as error:
            self.fault = error  # who calls from another language may not pass it on as it is
            raise


class MemorySink:
    """The same interface for an output that stays in memory; `temporary` is its bytes."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self.fault: OSError | None = None

    def write(self, data: bytes) -> int:
        """Add the next bytes."""
        return self._buffer.write(data)

    def flush(self) -> None:
        """Do nothing: everything is in memory already."""

    def moved_to(self, path: Path) -> Path:
        """Move what is written so far to a file, and start again."""
        path.write_bytes(self._buffer.getvalue())
        path.chmod(0o600)
        self._buffer = io.BytesIO()
        return path

    def finish(self) -> None:
        """Do nothing: there is no file to close."""

    @property
    def temporary(self) -> bytes:
        """The bytes written so far."""
        return self._buffer.getvalue()

    @property
    def sha256(self) -> str:
        """The hash of the bytes."""
        return hashlib.sha256(self._buffer.getbuffer()).hexdigest()

    def commit(self) -> None:
        """Do nothing: there is no file to rename."""

    def discard(self) -> None:
        """Drop the bytes."""
        self._buffer = io.BytesIO()


def hidden_name(path: str | Path) -> Path:
    """Make up a name beside the target that nobody else uses."""
    target = Path(path)
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.unfinished")


def _create(path: str | Path) -> tuple[Path, IO[bytes]]:
    """Make the hidden file; what goes to standard output waits among the temporary files."""
    if str(path) == "-":
        handle, name = tempfile.mkstemp(suffix=".unfinished")  # mkstemp gives mode 0600
        return Path(name), os.fdopen(handle, "wb")
    if Path(path).is_dir():
        raise UsageError(f"{shown(path)} is a folder", hint="name a file, or choose --format ubi")
    temporary = hidden_name(path)
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be written: {error.strerror}") from None
    return temporary, os.fdopen(handle, "wb")


def _packer(compression: str) -> Any:
    """Make a packer whose bytes depend on the content alone: no time and no name in the header."""
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


def sha256(path: str | Path) -> str:
    """Give the hash of a file's bytes; of a folder, the hash of its files' names and hashes."""
    target = Path(path)
    if not target.is_dir():
        with open(target, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return folder_hash({part.name: sha256(part) for part in target.glob("ubi_*") if part.is_file()})


def folder_hash(hashes: dict[str, str]) -> str:
    """Hash the sorted lines `hash, two spaces, name`, as sha256sum prints them."""
    lines = "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))
    return hashlib.sha256(lines.encode()).hexdigest()

"""The shipped taxonomy file: named integer arrays and word lists, compressed together."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import zstandard

from querycloak.errors import DataError

SHIPPED = Path(__file__).parent / "data" / "taxonomy.zst"
VERSION = 1
#: Far above what the format needs; a damaged or hostile file must not fill the memory.
LARGEST = 1 << 30
ARCHIVE = b"PK\x03\x04"

Arrays = Mapping[str, npt.NDArray[np.generic]]


def write(path: Path, arrays: Arrays) -> None:
    """Write arrays as one file; equal arrays give equal bytes."""
    plain = io.BytesIO()
    np.savez(plain, allow_pickle=False, version=np.array(VERSION), **arrays)
    path.write_bytes(zstandard.ZstdCompressor(level=19).compress(plain.getvalue()))


def read(path: Path) -> dict[str, npt.NDArray[np.generic]]:
    """Read such a file back; anything else is a `DataError`."""
    try:
        plain = zstandard.ZstdDecompressor().decompress(path.read_bytes(), max_output_size=LARGEST)
        with np.load(io.BytesIO(plain), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (zstandard.ZstdError, ValueError, OSError) as error:
        raise DataError("the taxonomy file cannot be read", hint="build it anew or reinstall") from error
    if int(arrays.get("version", np.array(0))) != VERSION:
        raise DataError(f"the taxonomy file is not of version {VERSION}", hint="build it anew or reinstall")
    return arrays


def is_ours(path: Path) -> bool:
    """Tell a file of this format from other compressed files: it is an archive inside zstandard."""
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as plain:
            return plain.read(len(ARCHIVE)) == ARCHIVE
    except zstandard.ZstdError:
        return False


@cache
def shipped() -> dict[str, npt.NDArray[np.generic]]:
    """Read the file that comes with the package, once per process."""
    return read(SHIPPED)


def pack(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Turn a list of texts without line breaks into bytes."""
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


def unpack(packed: npt.NDArray[np.generic]) -> list[str]:
    """Turn the bytes back into the list."""
    return packed.tobytes().decode().split("\n") if packed.size else []

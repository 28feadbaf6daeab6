"""Files of taxonomies: the package file, tables of categories, and the builder that all readers fill."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

import numpy as np
import numpy.typing as npt
import zstandard

from querycloak.errors import DataError
from querycloak.text.lexicon import Lexicon

if TYPE_CHECKING:
    from _csv import Reader

SHIPPED: Final = Path(__file__).parent / "data" / "taxonomy.zst"
VERSION: Final = 1
#: Bytes; far above what the format needs. A damaged or hostile file must not fill the memory.
LARGEST: Final = 1 << 30
_ARCHIVE, _GZIP, _ZSTD = b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: Stands for `/` inside a name, so that a path can be split at every `/`.
SLASH: Final = "\u2215"
#: Weight of a category's own name, of each word of a longer name, and of a term of a table.
NAME, NAME_WORD, TERM = 1.0, 0.3, 1.0
_BY_PATH, _BY_PARENT = {"path"}, {"id", "parent", "name"}

Arrays = Mapping[str, npt.NDArray[np.generic]]
Row = tuple[int, dict[str, str]]


def write(path: Path, arrays: Arrays) -> None:
    """Write arrays as one file; equal arrays give equal bytes."""
    plain = io.BytesIO()
    np.savez(plain, allow_pickle=False, version=np.array(VERSION), **arrays)
    path.write_bytes(zstandard.ZstdCompressor(level=19).compress(plain.getvalue()))


def read(path: Path) -> dict[str, npt.NDArray[np.generic]]:
    """Return the arrays of such a file. Raise DataError for anything else."""
    try:
        plain = zstandard.ZstdDecompressor().decompress(path.read_bytes(), max_output_size=LARGEST)
        with np.load(io.BytesIO(plain), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (zstandard.ZstdError, ValueError, OSError) as error:
        raise DataError("the taxonomy file cannot be read", hint="build it anew or reinstall") from error
    if int(arrays.get("version", np.array(0))) != VERSION:
        raise DataError(f"the taxonomy file is not of version {VERSION}", hint="build it anew or reinstall")
    return arrays


def is_package_file(path: Path) -> bool:
    """Check whether a file has this format: an archive inside zstandard."""
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as plain:
            return plain.read(len(_ARCHIVE)) == _ARCHIVE
    except zstandard.ZstdError:
        return False


@cache
def shipped() -> dict[str, npt.NDArray[np.generic]]:
    """Return the arrays of the file in the package, read once per process."""
    return read(SHIPPED)


def pack(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Return a list of texts without line breaks as bytes."""
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


def unpack(packed: npt.NDArray[np.generic]) -> list[str]:
    """Return the texts of `pack`."""
    return packed.tobytes().decode().split("\n") if packed.size else []


class TreeBuilder:
    """Builds a tree path by path; ancestors that are missing are added.

    A term takes 13 bytes, and each different text is kept once: dumps have tens of millions of terms.
    """

    def __init__(self) -> None:
        self.parent = [-1]
        self.names = [""]
        self._children: dict[tuple[int, str], int] = {}
        self._codes: dict[str, int] = {}
        self._text, self._node, self._weight, self._curated = array("i"), array("i"), array("f"), array("b")
        self.uncurated = 0

    def add(self, path: Sequence[str]) -> int:
        """Return the node of a path, after adding missing nodes."""
        node = 0
        for name in path:
            node = self._child(node, name.replace("/", SLASH))
        return node

    def add_terms(self, node: int, terms: Iterable[tuple[str, float]], *, curated: bool = True) -> None:
        """Add weighted terms to a category; `curated` if a person chose them for it."""
        for text, weight in terms:
            self.uncurated += not curated
            self._text.append(self._codes.setdefault(text, len(self._codes)))
            self._node.append(node)
            self._weight.append(weight)
            self._curated.append(curated)

    def drop_below(self, weight: float) -> None:
        """Drop the terms of less weight that nobody chose."""
        kept = np.array(self._curated, np.bool_) | (np.array(self._weight, np.float32) >= weight)
        for held in (self._text, self._node, self._weight, self._curated):
            left = np.frombuffer(held.tobytes(), held.typecode)[kept]
            del held[:]
            held.frombytes(left.tobytes())
        self.uncurated = len(kept) - int(np.count_nonzero(~kept)) - sum(self._curated)

    def lexicon(self) -> Lexicon:
        """Return the terms of all categories. Raise DataError if there is no category."""
        if len(self.names) == 1:
            raise DataError("the taxonomy file holds no category")
        return Lexicon.gather(
            list(self._codes),
            np.array(self._text, np.int32),
            np.array(self._node, np.int32),
            np.array(self._weight, np.float32),
            np.array(self._curated, np.bool_),
        )

    def _child(self, parent: int, name: str) -> int:
        node = self._children.get((parent, name))
        if node is None:
            node = self._children[parent, name] = len(self.names)
            self.parent.append(parent)
            self.names.append(name)
            words = name.split()
            self.add_terms(node, [(name, NAME), *((word, NAME_WORD) for word in words if len(words) > 1)])
        return node


@contextmanager
def open_plain(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; gzip and zstandard are decompressed."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(f"the taxonomy file cannot be opened: {error.strerror}") from error
    with file:
        start = file.read(len(_ZSTD))
        file.seek(0)
        if start.startswith(_GZIP):
            with gzip.open(file) as plain:
                yield cast(BinaryIO, plain)
        elif start == _ZSTD:
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, reader)))
        else:
            yield file


def read_table(path: Path, builder: TreeBuilder) -> None:
    """Add the categories and terms of a table: `path[,terms]`, or `id,parent,name[,terms]`.

    Terms are separated by `;`.
    """
    rows = _rows(path)
    header = next(rows)[1]
    if header.keys() >= _BY_PATH:
        _add_paths(rows, builder)
    elif header.keys() >= _BY_PARENT:
        _add_links(list(rows), builder)
    else:
        raise DataError(
            "line 1 of the taxonomy table does not name its columns",
            hint="the columns are `path` and `terms`, or `id`, `parent`, `name` and `terms`",
        )


def _rows(path: Path) -> Iterator[Row]:
    """Yield the header (names by name), then each row with its line number, without blank lines."""
    with open_plain(path) as file:
        lines = _lines(enumerate(file, start=1))
        first = next(lines, "")
        table = csv.reader(lines, delimiter="\t" if "\t" in first else ",", strict=True)
        names = [name.strip().lower() for name in next(csv.reader([first], table.dialect), [])]
        if len(set(names)) < len(names):
            raise DataError("line 1 of the taxonomy table names a column twice")
        yield 1, dict(zip(names, names, strict=True))
        yield from _cells(table, names)


def _lines(numbered: Iterator[tuple[int, bytes]]) -> Iterator[str]:
    number = 0
    try:
        for number, line in numbered:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"line {number} of the taxonomy table is not UTF-8") from error
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise DataError(f"the taxonomy table cannot be unpacked after line {number}") from error


def _cells(table: Reader, names: list[str]) -> Iterator[Row]:
    while True:
        line = 2 + table.line_num  # the header was read before
        try:
            cells = next(table, None)
        except csv.Error as error:
            raise DataError(f"line {line} of the taxonomy table has quotes in the wrong place") from error
        if cells is None:
            return
        if len(cells) > len(names) or (cells and len(cells) < len(names) - ("terms" in names)):
            raise DataError(f"line {line} of the taxonomy table has {len(cells)} fields, not {len(names)}")
        if cells:
            yield line, dict(zip(names, map(str.strip, cells), strict=False))


def _add_paths(rows: Iterator[Row], builder: TreeBuilder) -> None:
    for line, row in rows:
        names = [name.strip() for name in row["path"].split("/")]
        if "" in names:
            raise DataError(f"line {line} of the taxonomy table, column `path`: a name is empty")
        _add_terms(builder, builder.add(names), row)


def _add_terms(builder: TreeBuilder, node: int, row: dict[str, str]) -> None:
    builder.add_terms(node, [(term, TERM) for term in row.get("terms", "").split(";") if term.strip()])


def _add_links(rows: list[Row], builder: TreeBuilder) -> None:
    by_id: dict[str, Row] = {}
    for line, row in rows:
        for column in ("id", "name"):
            if not row[column]:
                raise DataError(f"line {line} of the taxonomy table, column `{column}`: empty")
        if row["id"] in by_id:
            raise DataError(f"line {line} of the taxonomy table, column `id`: used before")
        by_id[row["id"]] = line, row
    for line, row in rows:
        _add_terms(builder, builder.add(_path_to(line, row, by_id)), row)


def _path_to(line: int, row: dict[str, str], by_id: dict[str, Row]) -> list[str]:
    """Return the names from a category without a parent down to this one."""
    names, seen = [row["name"]], {row["id"]}
    while row["parent"]:
        if row["parent"] not in by_id:
            raise DataError(f"line {line} of the taxonomy table, column `parent`: no such id")
        line, row = by_id[row["parent"]]
        if row["id"] in seen:
            raise DataError(f"line {line} of the taxonomy table, column `parent`: leads back to itself")
        seen.add(row["id"])
        names.append(row["name"])
    return names[::-1]

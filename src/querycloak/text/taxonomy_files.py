"""Files of taxonomies: the package file, tables, the Open Directory's dumps, and the builder they fill."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast
from xml.parsers import expat

import numpy as np
import numpy.typing as npt
import polars as pl
import zstandard

from querycloak.errors import DataError
from querycloak.text.lexicon import Lexicon
from querycloak.text.normalise import normalise

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
#: The Open Directory's files, which are read as streams.
DUMPS: Final = ("structure.rdf.u8", "content.rdf.u8")
#: Weight of a word in the titles and descriptions of a category's pages: at most, and per page.
MOST, PER_PAGE = 0.3, 0.02
#: Words that are kept of one category, and of all. With more, words of fewer pages go first.
WORDS_PER_CATEGORY, MOST_WORDS = 40, 6_000_000
SHORTEST_WORD = 3
#: Characters of a title and description that are read.
LONGEST_PAGE = 2000
#: Pages whose words are counted at a time.
_PAGES = 1000
_TOP = "Top"
_TEXTS = ("Title", "Description", "topic")
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


def read_odp(paths: list[Path], builder: TreeBuilder) -> None:
    """Add the categories and words of one or several dump files, with bounded memory."""
    for path in paths:
        _Dump(builder).read(path)


class _Dump:
    """Parser of one file: adds each category, and the words of its pages when the next one begins."""

    def __init__(self, builder: TreeBuilder) -> None:
        self._builder = builder
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.EntityDeclHandler = self._refuse_entity
        self._open = ""
        self._inside_page = False
        self._texts: dict[str, str] = {}
        self._topic: str | None = None
        self._words: Counter[str] = Counter()
        self._pages: list[str] = []
        self._least = 1  # pages that a word must be on

    def read(self, path: Path) -> None:
        with open_plain(path) as file:
            try:
                self._parser.ParseFile(file)
            except (expat.ExpatError, EOFError, OSError) as error:
                raise self._fault("is not well-formed XML") from error
        self._end_category()

    def _fault(self, what: str) -> DataError:
        return DataError(f"the ODP dump {what}, near line {self._parser.CurrentLineNumber}")

    def _refuse_entity(self, *_: object) -> None:
        raise self._fault("declares an entity, which real dumps never do")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local(tag)
        if name == "Topic":
            self._add({_local(key): value for key, value in attributes.items()}.get("id"))
        elif name == "ExternalPage":
            self._inside_page, self._texts = True, {}
        self._open = name if self._inside_page and name in _TEXTS else ""

    def _text(self, text: str) -> None:
        if self._open:
            self._texts[self._open] = self._texts.get(self._open, "") + text

    def _end(self, tag: str) -> None:
        self._open = ""
        if _local(tag) == "ExternalPage":
            self._inside_page = False
            self._add_page()

    def _add(self, topic: str | None) -> int:
        if topic is None:
            raise self._fault("has a category without `r:id`")
        parts = topic.split("/")
        if "" in parts and topic:
            raise self._fault("has a category with an empty name")
        below = parts[1:] if parts[0] == _TOP else parts
        return self._builder.add([part.replace("_", " ") for part in below if part])

    def _add_page(self) -> None:
        topic = self._texts.get("topic", "").strip()
        if topic and topic != self._topic:
            self._end_category()
            self._topic = topic
        self._pages.append(f"{self._texts.get('Title', '')} {self._texts.get('Description', '')}")
        if len(self._pages) == _PAGES:
            self._count_words()

    def _count_words(self) -> None:
        for text in normalise(pl.Series(self._pages, dtype=pl.String), LONGEST_PAGE).to_list():
            words = {word for word in text.split(" ") if len(word) >= SHORTEST_WORD and not word.isdecimal()}
            self._words.update(words)
        self._pages = []

    def _end_category(self) -> None:
        """Keep the most frequent words of a category; drop rare ones if there are too many in all."""
        self._count_words()
        if self._topic is not None:
            usual = sorted(self._words.items(), key=lambda pair: (-pair[1], pair[0]))[:WORDS_PER_CATEGORY]
            terms = [(word, min(MOST, PER_PAGE * pages)) for word, pages in usual if pages >= self._least]
            self._builder.add_terms(self._add(self._topic), terms, curated=False)
            if self._builder.uncurated > MOST_WORDS:
                self._least += 1
                self._builder.drop_below(PER_PAGE * (self._least - 0.5))
        self._words = Counter()


def _local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(":")[2]

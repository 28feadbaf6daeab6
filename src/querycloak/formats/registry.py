"""The formats: what a format must provide, the table of names, and detection by content and name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import polars as pl

from querycloak.errors import UsageError
from querycloak.files import split_compression
from querycloak.formats import times
from querycloak.formats.source import Block, LineBlocks, Source, display_name
from querycloak.log import CANONICAL
from querycloak.registry import Registry

if TYPE_CHECKING:
    from querycloak.formats.layout import Layout
    from querycloak.formats.output import Encoder, OutputFile
    from querycloak.formats.reading import RawTable, ReadOptions

#: If several formats match equally well, the first one is taken: specific formats stand before general ones.
FORMATS: Final = Registry(
    kind="format",
    group="querycloak.formats",
    built_in={
        "parquet": "querycloak.formats.parquet:Parquet",
        "ubi": "querycloak.formats.ubi:Ubi",
        "jsonl": "querycloak.formats.jsonl:JsonLines",
        "aol": "querycloak.formats.aol:Aol",
        "excite": "querycloak.formats.excite:Excite",
        "takeout": "querycloak.formats.takeout:Takeout",
        "list": "querycloak.formats.query_list:QueryList",
        "tsv": "querycloak.formats.delimited:Tsv",
        "csv": "querycloak.formats.delimited:Csv",
    },
)


class Match(IntEnum):
    """How well a file fits a format."""

    NO = 0
    POSSIBLE = 1
    CERTAIN = 2


@dataclass(frozen=True)
class FormatTraits:
    """Properties of a format that other code may use."""

    extensions: tuple[str, ...] = ()
    by_line: bool = False  # records are lines, so that a growing file can be followed
    quoting: bool = False  # a value can contain the delimiter and line ends
    header: bool = False  # the first line names the columns
    fixed_columns: bool = False  # no column can be added
    folder: bool = False  # several files in a folder, the second one named as `events`
    single_person: bool = False  # a person's own history; detected only where one is asked for
    holds_counts: bool = True  # can hold a table of counts
    same_bytes: bool = (
        True  # equal records in one layout are equal bytes, with every version of the libraries
    )


class Described(Protocol):
    """What is known about an input while it is read."""

    @property
    def layout(self) -> Layout:
        """How the file looks."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns that are not passed on."""


class Reader(Described, Protocol):
    """Rows of an opened input."""

    def tables(self) -> Iterator[RawTable]:
        """Yield the rows, values as the file has them."""


class BlockParser(Described, Protocol):
    """Parser of whole lines, for files and for the service."""

    def parse(self, block: Block, first_row: int = 0) -> RawTable:
        """Return the rows of a block, numbered from `first_row`."""


class Format(ABC):
    """A file format: detection, reader, encoder. A format that is only read has no encoder."""

    name: ClassVar[str]
    traits: ClassVar[FormatTraits]
    #: The format's own names of canonical columns; empty if a log names its columns.
    names: ClassVar[Mapping[str, str]] = {}
    #: Its names of canonical columns that a log may have beside `names`.
    further_names: ClassVar[Mapping[str, str]] = {}
    delimiter: ClassVar[str] = ""
    default_time_style: ClassVar[str] = times.RFC3339

    def detect(self, head: bytes, file_name: str) -> Match:
        """Return how well a file fits: its first bytes, decompressed, and its name without `.gz`."""
        return Match.POSSIBLE if self.has_extension(file_name) else Match.NO

    def has_extension(self, file_name: str) -> bool:
        """Check whether a file is named like one of this format."""
        return Path(file_name).suffix.lower() in self.traits.extensions

    def default_layout(self, columns: Sequence[str], compression: str = "") -> Layout:
        """Return the usual layout for a log with these columns."""
        from querycloak.formats.layout import Layout

        own = dict(self.names)
        own |= {name: column for name, column in self.further_names.items() if name in columns}
        mapping = own if self.names else {n: n for n in columns if n in CANONICAL}
        return Layout(
            format=self.name,
            columns=tuple(mapping.values()) if self.names else tuple(columns),
            mapping=mapping,
            kept=() if self.names else tuple(name for name in columns if name not in mapping),
            header=self.traits.header,
            delimiter=self.delimiter,
            time_style=self.default_time_style,
            compression=compression,
        )

    def find_file(self, folder: Path) -> Path:
        """Return the file to read if a folder is named."""
        raise UsageError(f"{display_name(folder)} is a folder, not a log", hint="name a file")

    def check_folder(self, folder: Path) -> None:
        """Raise UsageError if a folder that is to be replaced is no earlier output of this format."""
        if any(folder.iterdir()):
            raise UsageError(f"the folder {display_name(folder)} is not empty", hint="name a new folder")

    @abstractmethod
    def reader(self, source: Source, options: ReadOptions) -> Reader:
        """Return a reader of an opened input."""

    def encoder(self, layout: Layout, output: OutputFile) -> Encoder:
        """Return an encoder that writes records to `output`."""
        raise UsageError(f"the format {self.name} can be read, not written", hint="choose another format")

    def parse_time(self, texts: pl.Series) -> pl.Series:
        """Return the times of texts; null for texts that are no times."""
        return times.parse(texts)

    def time_style(self, text: str) -> str:
        """Return the style in which a readable time is written."""
        return times.style_of(text)

    def write_time(self, column: pl.Series, style: str, first_row: int) -> pl.Series:
        """Return times as texts of a style; `first_row` is the number of the first row, for errors."""
        return times.write(column, style)


class LineFormat(Format):
    """A format whose records are lines: one parser serves files, the service's file tail, Kafka and HTTP."""

    @abstractmethod
    def parser(self, first_line: bytes, options: ReadOptions) -> BlockParser:
        """Return a parser; `first_line` is the first line of the file, the header if the format has one."""

    def reader(self, source: Source, options: ReadOptions) -> Reader:
        """Return a reader of an opened input."""
        blocks = LineBlocks(source.chunks())
        first = blocks.first_line() if self.traits.header else source.head.partition(b"\n")[0]
        return _LineReader(blocks, self.parser(first, options))


class _LineReader:
    """Reader of a file by its blocks of lines."""

    def __init__(self, blocks: LineBlocks, parser: BlockParser) -> None:
        self._blocks, self._parser = blocks, parser

    @property
    def layout(self) -> Layout:
        return self._parser.layout

    @property
    def dropped(self) -> tuple[str, ...]:
        return self._parser.dropped

    def tables(self) -> Iterator[RawTable]:
        first_row = 0
        for block in self._blocks:
            table = self._parser.parse(block, first_row)
            if table.unparsed:
                self._blocks.push_back(table.unparsed)
            first_row = table.end
            yield table


def get(name: str) -> Format:
    """Return the format of that name. Raise UnknownName if there is none."""
    found: Format = FORMATS.get(name)()
    return found


def every() -> list[Format]:
    """Return all formats in the order of the table."""
    return [get(name) for name in FORMATS.names()]


def folder_format() -> Format:
    """Return the format whose logs are folders."""
    return next(one for one in every() if one.traits.folder)


def detect(head: bytes, file_name: str = "", *, single_person: bool = False) -> Format | None:
    """Return the format that fits a file best; None if none does."""
    bare, _ = split_compression(file_name)
    found = [one for one in every() if single_person or not one.traits.single_person]
    matches = {one: one.detect(head, bare) for one in found}
    best = max(found, key=lambda one: matches[one])  # the first of equally good ones
    return best if matches[best] else None


def for_output(file_name: str) -> list[Format]:
    """Return the formats that a file's name can mean, those that take any columns first."""
    bare, _ = split_compression(file_name)
    claiming = [one for one in every() if one.has_extension(bare) and not one.traits.single_person]
    return sorted(claiming, key=lambda one: one.traits.fixed_columns)

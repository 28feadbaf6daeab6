"""Reads a taxonomy from a table: `path[,terms]`, or `id,parent,name[,terms]`."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import zstandard

from querycloak.errors import DataError
from querycloak.text.builder import Builder, open_plain

if TYPE_CHECKING:
    from _csv import Reader

BY_PATH, BY_PARENT = {"path"}, {"id", "parent", "name"}
#: A term that the owner of the tree wrote down for a category speaks as strongly as its name.
TERM = 1.0
Row = tuple[int, dict[str, str]]


def read_csv_tree(path: Path, builder: Builder) -> None:
    """Add the categories and terms of a table; terms are separated by `;`."""
    rows = _rows(path)
    header = next(rows)[1]
    if header.keys() >= BY_PATH:
        _add_paths(rows, builder)
    elif header.keys() >= BY_PARENT:
        _add_links(list(rows), builder)
    else:
        raise DataError(
            "line 1 of the taxonomy table does not name its columns",
            hint="the columns are `path` and `terms`, or `id`, `parent`, `name` and `terms`",
        )


def _rows(path: Path) -> Iterator[Row]:
    """Give the header (as names of itself), then each row with its line number; blank lines are left out."""
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


def _add_paths(rows: Iterator[Row], builder: Builder) -> None:
    for line, row in rows:
        names = [name.strip() for name in row["path"].split("/")]
        if "" in names:
            raise DataError(f"line {line} of the taxonomy table, column `path`: a name is empty")
        _say(builder, builder.add(names), row)


def _say(builder: Builder, node: int, row: dict[str, str]) -> None:
    builder.say(node, [(term, TERM) for term in row.get("terms", "").split(";") if term.strip()])


def _add_links(rows: list[Row], builder: Builder) -> None:
    by_id: dict[str, Row] = {}
    for line, row in rows:
        for column in ("id", "name"):
            if not row[column]:
                raise DataError(f"line {line} of the taxonomy table, column `{column}`: empty")
        if row["id"] in by_id:
            raise DataError(f"line {line} of the taxonomy table, column `id`: used before")
        by_id[row["id"]] = line, row
    for line, row in rows:
        _say(builder, builder.add(_way_down(line, row, by_id)), row)


def _way_down(line: int, row: dict[str, str], by_id: dict[str, Row]) -> list[str]:
    """Follow parents up to a category without one, and give the names from there down."""
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

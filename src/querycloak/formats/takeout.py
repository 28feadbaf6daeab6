"""Google Takeout's `MyActivity.json`: one person's searches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import polars as pl

from querycloak.errors import DataError
from querycloak.formats import times, validation
from querycloak.formats.reading import RawTable, ReadOptions
from querycloak.formats.registry import Format, FormatTraits, Match, Reader
from querycloak.formats.source import Source
from querycloak.formats.validation import bad_rows

#: How the title of a search starts in English; in other languages the address is used.
_TITLE: Final = "Searched for "
#: The path of a search's address, and the parameter with its words.
_ADDRESSES: Final = {"/search": "q", "/results": "search_query"}
#: The file is one JSON value, so it is held in memory.
_LARGEST: Final = 1 << 30


class Takeout(Format):
    """A JSON array of activities; searches have a title or an address with the words."""

    name = "takeout"
    traits = FormatTraits(single_person=True)

    def detect(self, head: bytes, file_name: str) -> Match:
        """Return how well a file fits; exports in other forms are detected so that they can be explained."""
        return Match.CERTAIN if head.lstrip().startswith((b"[", b"<", b"PK\x03\x04")) else Match.NO

    def reader(self, source: Source, options: ReadOptions) -> Reader:
        """Return a reader of an opened input."""
        return TakeoutReader(self, source, options)


class TakeoutReader:
    """Rows of an export: one for each activity; activities that are no searches are bad rows."""

    dropped = ()

    def __init__(self, own: Takeout, source: Source, options: ReadOptions) -> None:
        self.layout = own.default_layout(("query", "time"))
        self._items = _activities(source, options.where)

    def tables(self) -> Iterator[RawTable]:
        """Yield all rows."""
        queries = [_query(item) if isinstance(item, dict) else "" for item in self._items]
        good = [row for row, query in enumerate(queries) if query]
        written = [self._items[row].get("time") for row in good]
        texts = [time if isinstance(time, str) else None for time in written]
        frame = pl.DataFrame(
            {
                "row": pl.Series(good, dtype=pl.Int64),
                "query": pl.Series([queries[row] for row in good], dtype=pl.String),
                "time": times.parse(pl.Series("time", texts, dtype=pl.String)),
            }
        )
        bad = bad_rows([None if query else validation.NOT_A_SEARCH for query in queries], 0)
        yield RawTable(frame, 0, len(queries), bad)


def _activities(source: Source, where: str) -> list[Any]:
    head = source.head.lstrip()
    if head.startswith(b"<"):
        raise DataError(f"{where} is a web page", hint="export it again, in the format JSON")
    if head.startswith(b"PK\x03\x04"):
        raise DataError(f"{where} is an archive", hint="unpack it, and name MyActivity.json inside")
    parts, size = list[bytes](), 0
    for chunk in source.chunks():
        parts.append(chunk)
        size += len(chunk)
        if size > _LARGEST:
            raise DataError(f"{where} is larger than 1 GiB", hint="split it by year")
    try:
        items = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        raise DataError(f"{where} is not JSON", hint="export it again, in the format JSON") from None
    if not isinstance(items, list):
        raise DataError(f"{where} is not a list of activities")
    return items


def _query(item: Mapping[str, Any]) -> str:
    """Return the words that were searched for; empty if the activity is no search."""
    title = item.get("title")
    if isinstance(title, str) and title.startswith(_TITLE):
        return _valid(title.removeprefix(_TITLE))
    address = item.get("titleUrl")
    return _valid(_searched(address)) if isinstance(address, str) else ""


def _searched(address: str) -> str:
    try:
        parts = urlsplit(address)
        name = _ADDRESSES.get(parts.path)
        return parse_qs(parts.query).get(name, [""])[0] if name else ""
    except ValueError:
        return ""


def _valid(text: str) -> str:
    """Remove halves of surrogate pairs, which JSON can contain and UTF-8 cannot."""
    return text.encode("utf-8", "ignore").decode().strip()

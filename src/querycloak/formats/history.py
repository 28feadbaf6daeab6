"""Reads one person's own searches: any format of a log, Google's export, or a plain list of queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from querycloak.errors import DataError, UnknownName, UsageError
from querycloak.formats import takeout, times
from querycloak.formats.layout import FORMATS
from querycloak.formats.reader import read
from querycloak.formats.reasons import NO_QUERY, NOT_UTF8, NUL_BYTE, QUERY_LIMIT, QUERY_TOO_LONG
from querycloak.formats.sniff import AOL_HEADER
from querycloak.formats.streams import Source, shown
from querycloak.log import Skipped

#: What a history may be beside a log.
OWN_FORMATS: Final = ("takeout", "list")
LARGEST: Final = 1 << 30

_EXCITE = re.compile(rb"[^\t\r\n]*\t\d{12}\t")
_MOMENT: Final = r"(\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:?\d{2})?)"
_TIME_FIRST: Final = rf"^{_MOMENT}[\t ,;]+(\S.*)$"
_TIME_LAST: Final = rf"^(.*\S)\s*[\t;,]\s*{_MOMENT}$"


@dataclass(frozen=True)
class History:
    """One person's searches: `query`, and `time` where it is known; several clicks are one search."""

    frame: pl.DataFrame
    skipped: Skipped
    format: str


def read_history(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    strict: bool = False,
) -> History:
    """Read a history; what is no search is counted. More than one user is refused."""
    if format is not None and format not in (*FORMATS, *OWN_FORMATS):
        known = ", ".join((*FORMATS, *OWN_FORMATS))
        raise UnknownName(f"no format is called `{format}`", hint=f"the formats are {known}")
    if str(path) == "-":
        raise UsageError("a history is read from a file, not from standard input")
    kind = format or ("log" if mapping else _kind(path))
    skipped = Skipped()
    if kind == "takeout":
        frame = takeout.parse(_content(path), shown(path), skipped)
    elif kind == "list":
        frame = _lines(_content(path), skipped)
    else:
        log = read(path, format=format, mapping=mapping, strict=strict, required=("query",))
        _check_one_user(log.frame, path)
        frame, skipped, kind = log.frame, log.skipped, log.layout.format
    if strict and skipped.total:
        row, reason = skipped.first()
        raise DataError(f"{shown(path)}, row {row}: {reason}", hint="leave out `--strict` to count such rows")
    return History(_searches(frame), skipped, kind)


def _kind(path: str | Path) -> str:
    """Tell what a file is by how it starts."""
    if Path(path).is_dir():
        return "log"
    source = Source(path)
    source.close()
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = head.partition(b"\n")[0].rstrip(b"\r")
    if head.startswith(b"["):
        return "takeout"
    if head.startswith(b"<"):
        raise DataError(f"{shown(path)} is a web page", hint="export it again, in the format JSON")
    if head.startswith(b"PK\x03\x04"):
        raise DataError(f"{shown(path)} is an archive", hint="unpack it, and name MyActivity.json inside")
    if head[:1] == b"{" or head.startswith(b"PAR1") or first == AOL_HEADER or _EXCITE.match(first):
        return "log"
    names = re.split(rb"[\t,]", first.lower())
    return "log" if any(name.strip(b' "') == b"query" for name in names) else "list"


def _content(path: str | Path) -> bytes:
    source, parts, size = Source(path), list[bytes](), 0
    try:
        for chunk in source.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > LARGEST:
                raise DataError(f"{shown(path)} is larger than 1 GiB", hint="split it by year")
    finally:
        source.close()
    return b"".join(parts)


def _lines(content: bytes, skipped: Skipped) -> pl.DataFrame:
    """Read one query a line, with a time before or behind it if there is one."""
    kept, bad = list[str](), dict[str, list[int]]()
    for row, line in enumerate(content.splitlines()):
        text, reason = _line(line)
        if reason:
            bad.setdefault(reason, []).append(row)
        else:
            kept.append(text)
    for reason, rows in bad.items():
        skipped.add(reason, rows)
    whole = pl.col("line")
    first, last = whole.str.extract(_TIME_FIRST, 1), whole.str.extract(_TIME_LAST, 2)
    found = pl.DataFrame({"line": pl.Series(kept, dtype=pl.String)}).select(
        query=pl.coalesce(whole.str.extract(_TIME_FIRST, 2), whole.str.extract(_TIME_LAST, 1), whole),
        time=pl.coalesce(first, last),
    )
    return found.with_columns(time=times.parse(found["time"]), query=pl.col("query").str.strip_chars())


def _line(line: bytes) -> tuple[str, str]:
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError:
        return "", NOT_UTF8
    if not text:
        return "", NO_QUERY
    if "\0" in text:
        return "", NUL_BYTE
    return text, QUERY_TOO_LONG if len(line) > QUERY_LIMIT else ""


def _check_one_user(frame: pl.DataFrame, path: str | Path) -> None:
    people = frame["user"].drop_nulls().n_unique() if "user" in frame.columns else 1
    if people > 1:
        raise DataError(
            f"{shown(path)} holds the searches of {people:,} users, and a history is one person's",
            hint="for a log of many, use `protect`, `attack` and `measure RELEASE --original LOG`",
        )


def _searches(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep one row of each search: the same words at the same moment are several clicks of one."""
    if "time" not in frame.columns:
        frame = frame.with_columns(time=pl.lit(None, times.TIME))
    bare = frame.select("query", "time").with_row_index("place")
    timed = bare.filter(pl.col("time").is_not_null()).unique(["query", "time"], keep="first")
    kept = pl.concat([timed, bare.filter(pl.col("time").is_null())])
    return kept.sort("place").drop("place")

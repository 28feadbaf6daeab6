"""Which format a log has: told by its content first, by its name where the content leaves a choice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from querycloak.errors import DataError, UsageError
from querycloak.formats.layout import AOL, check_format, split_name
from querycloak.formats.streams import Source, shown

AOL_HEADER: Final = "\t".join(AOL.values()).encode()
_EXCITE_LINE: Final = re.compile(rb"[^\t\r\n]*\t\d{12}\t[^\t\r\n]*\r?")


def format_of(source: Source, asked: str | None) -> str:
    """Name the format of an opened log."""
    if asked is not None:
        return check_format(asked)
    head = source.head.removeprefix(b"\xef\xbb\xbf")
    if isinstance(source.path, bytes):
        return "parquet"  # the only format that is kept in memory
    possible, _ = split_name(source.path)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.lstrip()[:1] == b"{":
        return "ubi" if _is_ubi(head, source.path) else "jsonl"
    if head.lstrip()[:1] == b"[" and "jsonl" in possible:
        raise DataError(
            f"{shown(source.path)} is one JSON array, not JSON lines", hint="put one object on each line"
        )
    if not head.strip():
        return _of_empty(source, possible)
    return _of_lines(head.partition(b"\n")[0], possible)


def _of_empty(source: Source, possible: tuple[str, ...]) -> str:
    if not possible:
        raise DataError(f"{shown(source.path)} is empty")
    return possible[0]


def _of_lines(first: bytes, possible: tuple[str, ...]) -> str:
    if first.rstrip(b"\r") == AOL_HEADER:
        return "aol"
    if _EXCITE_LINE.fullmatch(first) and "csv" not in possible[:1]:
        return "excite"
    if possible and possible[0] in ("csv", "jsonl", "parquet"):
        return possible[0]
    return "tsv" if b"\t" in first else "csv"


def _is_ubi(head: bytes, path: str | Path) -> bool:
    """Tell a dump of `ubi_queries` from other JSON lines."""
    if Path(path).name.startswith("ubi_queries"):
        return True
    for line in head.split(b"\n")[:2]:  # a bulk file has an action line first
        try:
            item = json.loads(line)
        except ValueError:
            continue
        item = item.get("_source", item) if isinstance(item, dict) else {}
        if isinstance(item, dict) and {"user_query", "query_id"} <= item.keys():
            return True
    return False


def ubi_files(folder: Path) -> tuple[Path, Path | None]:
    """Find the queries and the events in a folder."""
    queries, events = (_dump(folder, name) for name in ("ubi_queries", "ubi_events"))
    if queries is None:
        raise UsageError(
            f"{shown(folder)} is a folder without `ubi_queries.ndjson`",
            hint="name a file, or a folder with an OpenSearch UBI dump",
        )
    return queries, events


def _dump(folder: Path, name: str) -> Path | None:
    endings = (f".{kind}{packed}" for kind in ("ndjson", "jsonl", "json") for packed in ("", ".gz", ".zst"))
    return next((path for ending in endings if (path := folder / (name + ending)).is_file()), None)

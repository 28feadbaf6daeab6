"""Reads `MyActivity.json`, in which Google hands people what it kept of their searches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import polars as pl

from querycloak.errors import DataError
from querycloak.formats import times
from querycloak.formats.reasons import NUL_BYTE, QUERY_LIMIT, QUERY_TOO_LONG
from querycloak.log import Skipped

#: How the title of a search starts in English; in other languages its address tells.
_TITLE: Final = "Searched for "
#: Where a search keeps its words: the end of the path, and the name of the parameter.
_ADDRESSES: Final = {"/search": "q", "/results": "search_query"}
NOT_A_SEARCH: Final = "not a search"


def parse(content: bytes, where: str, skipped: Skipped) -> pl.DataFrame:
    """Give `query` and `time` of every search in the file; other activity is counted, not passed on."""
    try:
        items = json.loads(content)
    except (ValueError, RecursionError):
        raise DataError(f"{where} is not JSON", hint="export it again, in the format JSON") from None
    if not isinstance(items, list):
        raise DataError(f"{where} is not a list of activities")
    queries, written, bad = list[str](), list[str | None](), dict[str, list[int]]()
    for row, item in enumerate(items):
        query = _query(item) if isinstance(item, dict) else ""
        reason = _fault(query)
        if reason:
            bad.setdefault(reason, []).append(row)
        else:
            time = item.get("time")
            queries.append(query)
            written.append(time if isinstance(time, str) else None)
    for reason, rows in bad.items():
        skipped.add(reason, rows)
    stamps = times.parse(pl.Series("time", written, dtype=pl.String))
    return pl.DataFrame({"query": pl.Series(queries, dtype=pl.String), "time": stamps})


def _fault(query: str) -> str:
    if not query:
        return NOT_A_SEARCH
    if "\0" in query:
        return NUL_BYTE
    return QUERY_TOO_LONG if len(query.encode("utf-8", "replace")) > QUERY_LIMIT else ""


def _query(item: Mapping[str, Any]) -> str:
    """Find the words that were searched for; empty if the activity is something else."""
    title = item.get("title")
    if isinstance(title, str) and title.startswith(_TITLE):
        return _clean(title.removeprefix(_TITLE))
    address = item.get("titleUrl")
    return _clean(_searched(address)) if isinstance(address, str) else ""


def _searched(address: str) -> str:
    try:
        parts = urlsplit(address)
        name = _ADDRESSES.get(parts.path)
        return parse_qs(parts.query).get(name, [""])[0] if name else ""
    except ValueError:
        return ""


def _clean(text: str) -> str:
    """Drop half characters, which JSON can hold and no table can."""
    return text.encode("utf-8", "ignore").decode().strip()

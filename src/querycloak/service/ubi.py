"""Reads documents of OpenSearch UBI: searches and the clicks that follow; ids that join them are hashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from querycloak.errors import DataError
from querycloak.formats.jsonl import as_text
from querycloak.formats.ubi import CATEGORY, NAMES, at_path, unwrap
from querycloak.formats.validation import bad_rows
from querycloak.service.intake import Parsed, Record, objects
from querycloak.service.joining import EVENTS
from querycloak.service.pseudonyms import hashed

_FIELDS = {name: NAMES[name] for name in ("user", "query", "time")} | {"category": CATEGORY}


def _documents(body: bytes, *, lines: bool) -> list[dict[str, Any] | str]:
    """Give documents, out of their envelopes and without the action lines of a bulk request."""
    found = (unwrap(item) for item in objects(body, lines=lines))
    return [item for item in found if item is not None]


def queries(body: bytes, key: bytes, *, lines: bool) -> Parsed:
    """Read searches; each waits for its clicks under the hash of its `query_id`."""
    found = _documents(body, lines=lines)
    good = [(row, item) for row, item in enumerate(found) if isinstance(item, dict)]
    ids = [_join_id(item, key) or "" for _, item in good]
    records = [
        Record(**{name: as_text(at_path(item, path)) for name, path in _FIELDS.items()}) for _, item in good
    ]
    return Parsed(records, [row for row, _ in good], len(found), bad_rows(found, 0), ids)


def events(body: bytes, key: bytes, *, lines: bool) -> tuple[pl.DataFrame, int]:
    """Read clicks; also count the documents that are none, or belong to no search."""
    found = _documents(body, lines=lines)
    clicks = [item for item in found if isinstance(item, dict) and item.get("action_name") == "click"]
    known = [(_join_id(item, key), _rank(item), as_text(at_path(item, NAMES["url"]))) for item in clicks]
    rows: Sequence[Any] = [one for one in known if one[0] is not None]
    if found and all(isinstance(item, str) for item in found):
        raise DataError("the body holds no UBI events", hint="send JSON lines, an array or one object")
    return pl.DataFrame(rows, schema=EVENTS, orient="row"), len(found) - len(rows)


def _join_id(item: dict[str, Any], key: bytes) -> str | None:
    text = as_text(item.get("query_id"))
    return hashed(text, key) if text is not None else None


def _rank(item: dict[str, Any]) -> int | None:
    value = at_path(item, NAMES["rank"])
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None

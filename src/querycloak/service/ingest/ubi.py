"""OpenSearch UBI documents: searches and clicks; the ids that join them are hashed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from querycloak.errors import DataError
from querycloak.formats.jsonl import as_text
from querycloak.formats.ubi import CATEGORY, NAMES, at_path, unwrap
from querycloak.formats.validation import bad_rows
from querycloak.service.entries import EVENTS
from querycloak.service.ingest.parse import ParsedBody, Record, objects
from querycloak.service.ingest.pseudonyms import keyed_hash

_FIELDS: Final = {name: NAMES[name] for name in ("user", "query", "time")} | {"category": CATEGORY}
_RANK: Final = re.compile(r"-?[0-9]{1,18}(\.0)?")


def _documents(body: bytes, *, lines: bool) -> list[dict[str, Any] | str]:
    """Return documents without their envelopes and without the action lines of a bulk request."""
    found = (unwrap(item) for item in objects(body, lines=lines))
    return [item for item in found if item is not None]


def queries(body: bytes, key: bytes, *, lines: bool) -> ParsedBody:
    """Parse searches; each has the hash of its `query_id` as join id."""
    found = _documents(body, lines=lines)
    good = [(row, item) for row, item in enumerate(found) if isinstance(item, dict)]
    ids = [_join_id(item, key) or "" for _, item in good]
    records = [
        Record(**{name: as_text(at_path(item, path)) for name, path in _FIELDS.items()}) for _, item in good
    ]
    return ParsedBody(records, [row for row, _ in good], len(found), bad_rows(found, 0), ids)


def events(body: bytes, key: bytes, *, lines: bool) -> tuple[pl.DataFrame, int]:
    """Return clicks, and the number of documents that are no click or belong to no search."""
    found = _documents(body, lines=lines)
    clicks = [item for item in found if isinstance(item, dict) and item.get("action_name") == "click"]
    known = [(_join_id(item, key), _rank(item), as_text(at_path(item, NAMES["url"]))) for item in clicks]
    rows: Sequence[Any] = [one for one in known if one[0] is not None]
    if found and all(isinstance(item, str) for item in found):
        raise DataError("the body holds no UBI events", hint="send JSON lines, an array or one object")
    return pl.DataFrame(rows, schema=EVENTS, orient="row"), len(found) - len(rows)


def _join_id(item: dict[str, Any], key: bytes) -> str | None:
    text = as_text(item.get("query_id"))
    return keyed_hash(text, key) if text is not None else None


def _rank(item: dict[str, Any]) -> int | None:
    """Return the rank as files are read: `2`, `"2"` and `2.0` are the same; None for anything else."""
    text = as_text(at_path(item, NAMES["rank"])) or ""
    return int(text.removesuffix(".0")) if _RANK.fullmatch(text) else None

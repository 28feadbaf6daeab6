"""OpenSearch UBI 1.3: queries and click events, joined on `query_id`, which is then dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.errors import Refused, UsageError
from querycloak.formats import jsonl, times, validation
from querycloak.formats.columns import missing_column
from querycloak.formats.jsonl import Object, as_text, common_keys, kind_of
from querycloak.formats.layout import Layout
from querycloak.formats.output import Encoder, OutputFile
from querycloak.formats.reading import RawTable, ReadOptions
from querycloak.formats.registry import Format, FormatTraits, Match, Reader
from querycloak.formats.source import LineBlocks, Source, display_name
from querycloak.formats.validation import BadRows, add_bad_rows, bad_rows

NAMES: Final = {
    "user": "client_id",
    "query": "user_query",
    "time": "timestamp",
    "rank": "event_attributes.position.ordinal",
    "url": "event_attributes.object.object_id",
}
CATEGORY: Final = "query_attributes.category"
QUERIES: Final = "ubi_queries"
EVENTS: Final = "ubi_events"
#: Fields that identify people or join their records; never passed on, not even by name.
IDENTITY: Final = (
    *("query_id", "session_id", "client_id", "user_id", "message", "query"),
    *("query_attributes", "event_attributes", "query_response_id", "query_response_hit_ids"),
)
#: Further fields of the schema; a name that is in neither list is reported only if many documents have it.
_SCHEMA: Final = (*IDENTITY, "user_query", "application", "timestamp", "action_name", "message_type")
_ACTIONS: Final = ("index", "create", "update", "delete")
_FROM_EVENTS: Final = ("rank", "url")
_SEARCH: Final = ("user", "query", "time")
_CLICK: Final = {"query_id": pl.String, "rank": pl.String, "url": pl.String, "user": pl.String}
_ENDINGS: Final = tuple(
    f".{kind}{packed}" for kind in ("ndjson", "jsonl", "json") for packed in ("", ".gz", ".zst")
)


class Ubi(Format):
    """A folder with `ubi_queries` and `ubi_events` as JSON lines."""

    name = "ubi"
    traits = FormatTraits(extensions=(".ubi",), folder=True, holds_counts=False)
    names = NAMES
    further_names = {"category": CATEGORY}  # noqa: RUF012 - a constant of the class

    def detect(self, head: bytes, file_name: str) -> Match:
        """Return how well a file fits: by the fields of its first documents, or its name."""
        if head.lstrip()[:1] != b"{":
            return Match.NO if head.strip() else super().detect(head, file_name)
        return Match.CERTAIN if file_name.startswith(QUERIES) or _has_queries(head) else Match.NO

    def find_file(self, folder: Path) -> Path:
        """Return the file of queries in a folder."""
        found = _find(folder, QUERIES)
        if found is None:
            raise UsageError(
                f"{display_name(folder)} is a folder without `ubi_queries.ndjson`",
                hint="name a file, or a folder with an OpenSearch UBI dump",
            )
        return found

    def check_folder(self, folder: Path) -> None:
        """Raise UsageError if a folder holds anything but an earlier dump."""
        earlier = {name + ending for name in (QUERIES, EVENTS) for ending in _ENDINGS}
        if any(part.name not in earlier for part in folder.iterdir()):
            raise UsageError(f"the folder {display_name(folder)} holds other files", hint="name a new folder")

    def reader(self, source: Source, options: ReadOptions) -> Reader:
        """Return a reader of the queries and, if they are named or in the same folder, their events."""
        return UbiReader(source, options)

    def encoder(self, layout: Layout, output: OutputFile) -> Encoder:
        """Return an encoder that writes two files to `output`."""
        return UbiEncoder(layout, output)


def _has_queries(head: bytes) -> bool:
    for line in head.split(b"\n")[:2]:  # a bulk file has an action line first
        try:
            item = json.loads(line)
        except ValueError:
            continue
        item = item.get("_source", item) if isinstance(item, dict) else {}
        if isinstance(item, dict) and {"user_query", "query_id"} <= item.keys():
            return True
    return False


def _find(folder: Path, name: str) -> Path | None:
    return next((path for ending in _ENDINGS if (path := folder / (name + ending)).is_file()), None)


def at_path(item: Object, path: str) -> Any:
    """Return the value at `a.b.c` in an object; a key that is written `a.b.c` counts too."""
    if path in item:
        return item[path]
    value: Any = item
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def unwrap(line: Object | str) -> Object | str | None:
    """Return a document without its `_source` envelope; None for an action line of a bulk file."""
    if isinstance(line, str):
        return line
    source = line.get("_source")
    if isinstance(source, dict):
        return source
    if len(line) == 1 and next(iter(line)) in _ACTIONS and isinstance(next(iter(line.values())), dict):
        return None
    return line


def documents(source: Source) -> Iterator[tuple[list[Object | str], bool]]:
    """Yield the documents of each block, or reasons in their place; also whether a text can hold a NUL."""
    for block in LineBlocks(source.chunks()):
        lines, may_hold_nul = jsonl.read_objects(block)
        unwrapped = (unwrap(line) for line in lines)
        yield [line for line in unwrapped if line is not None], may_hold_nul


class UbiReader:
    """Rows of a UBI dump: one for each click, or for a query without clicks."""

    def __init__(self, queries: Source, options: ReadOptions) -> None:
        self._queries, self._options = queries, options
        self._mapping = {**NAMES, **options.mapping}
        self._dropped: dict[str, None] = {}
        self._with_rare_keys = 0
        self._refuse_identity()
        self._broken_events: list[str] = []
        events = options.events or (_find(queries.folder, EVENTS) if queries.folder else None)
        self._clicks, self._users = self._read_events(events)
        self._matched = np.zeros(self._clicks.height, dtype=np.bool_)
        self.layout = replace(
            Layout.default("ubi"),
            columns=tuple(dict.fromkeys([*self._mapping.values(), *options.keep])),
            mapping=dict(self._mapping),
            kept=tuple(options.keep),
        )
        self._known = False

    @property
    def dropped(self) -> tuple[str, ...]:
        """Fields seen so far that are not passed on."""
        return (*self._dropped, *jsonl.rare_keys(self._with_rare_keys))

    def tables(self) -> Iterator[RawTable]:
        """Yield the rows; clicks that belong to no query come last, as bad rows."""
        first = 0
        for lines, may_hold_nul in documents(self._queries):
            table = self._table(lines, first, may_hold_nul)
            first = table.end
            yield table
        if bad := self._events_alone(first):
            empty = pl.DataFrame({"row": pl.Series([], dtype=pl.Int64)})
            yield RawTable(empty, first, sum(rows.size for rows in bad.values()), bad)

    def _refuse_identity(self) -> None:
        for name in self._options.keep:
            if name.partition(".")[0] in IDENTITY:
                raise Refused(
                    f"the UBI field `{name}` is never passed on",
                    hint="it identifies people, or joins records to one another again",
                )

    def _read_events(self, path: str | Path | None) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the clicks, and the users of events where the user is not in the queries."""
        clicks, users = [pl.DataFrame(schema=_CLICK)], [pl.DataFrame(schema=_CLICK)]
        events = Source(path) if path is not None else None
        for lines, _ in documents(events) if events is not None else ():
            items = [line for line in lines if isinstance(line, dict)]
            self._broken_events += [line for line in lines if isinstance(line, str)]
            self._note_dropped(items, (self._mapping["rank"], self._mapping["url"]))
            clicks.append(self._event_frame([item for item in items if item.get("action_name") == "click"]))
            if "user" in self._options.mapping:
                users.append(self._event_frame(items))
        if events is not None:
            events.close()
        named = pl.concat(users).drop_nulls(["query_id", "user"]).unique("query_id", keep="first")
        return pl.concat(clicks).drop("user").with_row_index("click"), named.select(
            "query_id", event_user="user"
        )

    def _event_frame(self, items: list[Object]) -> pl.DataFrame:
        paths = {"query_id": "query_id", **{name: self._mapping[name] for name in ("rank", "url", "user")}}
        columns = {name: [as_text(at_path(item, path)) for item in items] for name, path in paths.items()}
        return pl.DataFrame(columns, schema=_CLICK)

    def _note_dropped(self, items: list[Object], used: tuple[str, ...]) -> None:
        """Add the fields of documents that are not used to the dropped ones."""
        common, rare = common_keys(items, (*_SCHEMA, *used))
        self._dropped |= dict.fromkeys(name for name in common if name not in used)
        self._with_rare_keys += rare

    def _table(self, lines: list[Object | str], first: int, may_hold_nul: bool) -> RawTable:
        items = [line if isinstance(line, dict) else {} for line in lines]
        if any(items):
            self._learn([item for item in items if item])
        frame = self._query_frame(items).with_columns(
            reason=pl.Series([line if isinstance(line, str) else None for line in lines], dtype=pl.String)
        )
        joined = self._joined(frame).with_row_index("row", offset=first).cast({"row": pl.Int64})
        bad: BadRows = {}
        for (reason,), group in joined.drop_nulls("reason").group_by("reason", maintain_order=True):
            add_bad_rows(bad, str(reason), group["row"].to_numpy())
        good = joined.filter(pl.col("reason").is_null()).drop("reason", "query_id", "click")
        return RawTable(good, first, joined.height, bad, may_hold_nul)

    def _query_frame(self, items: list[Object]) -> pl.DataFrame:
        columns = {"query_id": [as_text(item.get("query_id")) for item in items]}
        for name, path in self._mapping.items():
            if name not in _FROM_EVENTS and (name != "time" or "time" in self.layout.mapping):
                columns[name] = [as_text(at_path(item, path)) for item in items]
        for name in self._options.keep:
            columns[name] = [jsonl.as_kept(at_path(item, name)) for item in items]
        return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))

    def _joined(self, frame: pl.DataFrame) -> pl.DataFrame:
        if "user" in self._options.mapping:
            frame = frame.join(self._users, on="query_id", how="left", maintain_order="left")
            frame = frame.with_columns(pl.coalesce("user", "event_user").alias("user")).drop("event_user")
        joined = frame.join(self._clicks, on="query_id", how="left", maintain_order="left_right")
        self._matched[joined["click"].drop_nulls().to_numpy()] = True
        return joined

    def _learn(self, items: list[Object]) -> None:
        """Find the fields of documents; of the first ones, also whether and how times are written."""
        top = {path.partition(".")[0] for path in (*self._mapping.values(), *self._options.keep)}
        self._note_dropped(items, tuple({*self._mapping.values(), *self._options.keep, *top}))
        if self._known:
            return
        self._known = True
        present = {
            name for name, path in self._mapping.items() if any(at_path(i, path) is not None for i in items)
        }
        for name in self._options.required:
            if name not in present and name != "time" and not (name == "user" and self._users.height):
                raise missing_column(self._mapping[name], common_keys(items, _SCHEMA)[0], self._options.where)
        if "time" not in present:
            mapping = {name: path for name, path in self.layout.mapping.items() if name != "time"}
            self.layout = replace(self.layout, mapping=mapping)
        stamp = self._mapping["time"]
        self.layout = replace(self.layout, types={stamp: kind_of([at_path(item, stamp) for item in items])})

    def _events_alone(self, first: int) -> BadRows:
        """Return the bad events and the clicks without a query, numbered after all queries."""
        alone = int((~self._matched).sum())
        return bad_rows([*self._broken_events, *[validation.CLICK_ALONE] * alone], first)


class UbiEncoder(Encoder):
    """Two files: a line for each search and one for each click, with new query ids."""

    def __init__(self, layout: Layout, output: OutputFile) -> None:
        self._layout = layout
        self._queries_file = output.file(f"{QUERIES}.ndjson")
        self._events_file = output.file(f"{EVENTS}.ndjson")
        self._searches = 0
        self._before = 0
        self._last: tuple[object, ...] | None = None

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next records; consecutive clicks on one search share its id."""
        rows = _complete(frame)
        rows = rows.with_columns(_stamp(rows, self._layout), query_id=self._numbers(rows))
        fresh = rows.filter(pl.col("query_id") != pl.col("query_id").shift(1, fill_value=self._before))
        self._searches = int(rows["query_id"][-1])
        if fresh.height:
            self._queries_file.write(self._encode_queries(fresh))
        clicks = rows.filter(pl.col("url").is_not_null() | pl.col("rank").is_not_null())
        if clicks.height:
            self._events_file.write(_encode_events(clicks))
        last = rows[-1]
        clicked = last["url"][0] is not None or last["rank"][0] is not None
        self._last = tuple(last[name][0] for name in _SEARCH) if clicked else None

    def _numbers(self, rows: pl.DataFrame) -> pl.Series:
        """Return the number of each row's search; a record without a click is a search of its own."""
        clicked = rows.select(pl.col("url").is_not_null() | pl.col("rank").is_not_null()).to_series()
        same = clicked & clicked.shift(1, fill_value=False)
        for name in _SEARCH:
            column = rows[name]
            same = same & column.eq_missing(column.shift(1))
        if self._last is not None and bool(clicked[0]):
            same[0] = tuple(rows[0, name] for name in _SEARCH) == self._last
        self._before = self._searches
        return (~same).cum_sum().cast(pl.Int64) + self._searches

    def _encode_queries(self, rows: pl.DataFrame) -> bytes:
        fields = [
            pl.col("query_id").cast(pl.String),
            pl.col("user").alias("client_id"),
            pl.col("query").alias("user_query"),
            pl.col("timestamp"),
        ]
        if self._layout.mapping.get("category") == CATEGORY and "category" in rows.columns:
            fields.append(pl.struct("category").alias("query_attributes"))
        kept = [name for name in self._layout.kept if name in rows.columns]
        if not kept:
            return rows.select(fields).write_ndjson().encode()
        return _with_kept(rows.select(fields), rows.select(kept))


def _complete(frame: pl.DataFrame) -> pl.DataFrame:
    kinds: dict[str, Any] = dict.fromkeys(("user", "query", "url"), pl.String)
    kinds |= {"time": times.TIME, "rank": pl.Int64}
    absent = [pl.lit(None, kind).alias(name) for name, kind in kinds.items() if name not in frame.columns]
    return frame.with_columns(absent)


def _stamp(frame: pl.DataFrame, layout: Layout) -> pl.Series:
    """Return the times in the input's style, as numbers where it had numbers."""
    stamp = times.write(frame["time"].cast(times.TIME), layout.time_style).alias("timestamp")
    column = layout.mapping.get("time", NAMES["time"])
    if layout.types.get(column) in ("Int64", "Float64"):
        number = stamp.cast(pl.Int64, strict=False)
        return number if number.null_count() == stamp.null_count() else stamp
    return stamp


def _encode_events(rows: pl.DataFrame) -> bytes:
    attributes = pl.struct(
        pl.struct(pl.col("url").alias("object_id")).alias("object"),
        pl.struct(pl.col("rank").alias("ordinal")).alias("position"),
    )
    fields = rows.select(
        pl.lit("click").alias("action_name"),
        pl.col("query_id").cast(pl.String),
        pl.col("user").alias("client_id"),
        pl.col("timestamp"),
        attributes.alias("event_attributes"),
    )
    return fields.write_ndjson().encode()


def _with_kept(fields: pl.DataFrame, kept: pl.DataFrame) -> bytes:
    """Return the lines with the kept columns, as the values that they were in the input."""
    lines = []
    for item, extra in zip(fields.iter_rows(named=True), kept.iter_rows(named=True), strict=True):
        values = {k: jsonl.from_kept(v) if isinstance(v, str) else v for k, v in extra.items()}
        lines.append(jsonl.to_json({**item, **values}))
    return "".join(lines).encode()

"""Writing OpenSearch UBI: fresh query ids, the label as client, and nothing else of the input's ids."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl

from querycloak.errors import UsageError
from querycloak.formats import times
from querycloak.formats.jsonl import from_kept
from querycloak.formats.layout import UBI, UBI_CATEGORY, Layout
from querycloak.formats.sinks import Sink, folder_hash, hidden_name
from querycloak.formats.streams import shown

_SEARCH = ("user", "query", "time")


class UbiOutput:
    """Two files in a folder: one line for each search, one for each click."""

    def __init__(self, path: str | Path, layout: Layout, private: bool) -> None:
        _check_target(path)
        self._target, self._layout = Path(path), layout
        self.temporary = hidden_name(path)
        self.temporary.mkdir(mode=0o700)
        self._private = private
        ending = ".ndjson" + (f".{layout.compression}" if layout.compression else "")
        self._sinks = {
            name: Sink(self.temporary / (name + ending), layout.compression, private)
            for name in ("ubi_queries", "ubi_events")
        }
        self._searches = 0
        self._finished = False
        self._last: tuple[object, ...] | None = None

    def write(self, frame: pl.DataFrame) -> None:
        """Take the next records; clicks that follow one another on one search share its id."""
        rows = _complete(frame).with_columns(_stamp(frame, self._layout))
        rows = rows.with_columns(query_id=self._numbers(rows))
        fresh = rows.filter(pl.col("query_id") != pl.col("query_id").shift(1, fill_value=self._before))
        self._searches = int(rows["query_id"][-1])
        if fresh.height:
            self._sinks["ubi_queries"].write(self._queries(fresh))
        clicks = rows.filter(pl.col("url").is_not_null() | pl.col("rank").is_not_null())
        if clicks.height:
            self._sinks["ubi_events"].write(_events(clicks))
        self._remember(rows)

    def _numbers(self, rows: pl.DataFrame) -> pl.Series:
        """Number the searches on; a record without a click is always a search of its own."""
        clicked = rows.select(pl.col("url").is_not_null() | pl.col("rank").is_not_null()).to_series()
        same = clicked & clicked.shift(1, fill_value=False)
        for name in _SEARCH:
            column = rows[name]
            same = same & column.eq_missing(column.shift(1))
        if self._last is not None and bool(clicked[0]):
            same[0] = tuple(rows[0, name] for name in _SEARCH) == self._last
        self._before = self._searches
        return (~same).cum_sum().cast(pl.Int64) + self._searches

    def _remember(self, rows: pl.DataFrame) -> None:
        last = rows[-1]
        clicked = last["url"][0] is not None or last["rank"][0] is not None
        self._last = tuple(last[name][0] for name in _SEARCH) if clicked else None

    def _queries(self, rows: pl.DataFrame) -> bytes:
        fields = [
            pl.col("query_id").cast(pl.String),
            pl.col("user").alias("client_id"),
            pl.col("query").alias("user_query"),
            pl.col("timestamp"),
        ]
        if self._layout.mapping.get("category") == UBI_CATEGORY and "category" in rows.columns:
            fields.append(pl.struct("category").alias("query_attributes"))
        kept = [name for name in self._layout.kept if name in rows.columns]
        if not kept:
            return rows.select(fields).write_ndjson().encode()
        return _with_kept(rows.select(fields), rows.select(kept))

    def finish(self) -> None:
        """Complete the files; the folder around them is still hidden and private."""
        if not self._finished:
            self._finished = True
            for sink in self._sinks.values():
                sink.commit()

    def commit(self) -> None:
        """Put both files into the folder, in place of an earlier dump."""
        self._target.mkdir(exist_ok=True, mode=0o700 if self._private else 0o777)
        names = set()
        for sink in self._sinks.values():
            written = Path(sink.path)
            written.replace(self._target / written.name)
            names.add(written.name)
        for old in self._target.glob("ubi_*"):
            if old.name not in names:
                old.unlink()
        self.discard()

    def discard(self) -> None:
        """Leave nothing behind."""
        for sink in self._sinks.values():
            sink.discard()
        shutil.rmtree(self.temporary, ignore_errors=True)

    @property
    def sha256(self) -> str:
        """The hash of both files' names and hashes."""
        return folder_hash({Path(sink.path).name: sink.sha256 for sink in self._sinks.values()})


def _check_target(path: str | Path) -> None:
    if str(path) == "-":
        raise UsageError("ubi is two files in a folder, which standard output cannot hold")
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise UsageError(f"{shown(path)} is a file; ubi is written to a folder")
    if target.is_dir() and any(not part.name.startswith("ubi_") for part in target.iterdir()):
        raise UsageError(f"the folder {shown(path)} holds other files", hint="name a new folder")


def _complete(frame: pl.DataFrame) -> pl.DataFrame:
    kinds: dict[str, Any] = dict.fromkeys(("user", "query", "url"), pl.String)
    kinds |= {"time": times.TIME, "rank": pl.Int64}
    absent = [pl.lit(None, kind).alias(name) for name, kind in kinds.items() if name not in frame.columns]
    return frame.with_columns(absent)


def _stamp(frame: pl.DataFrame, layout: Layout) -> pl.Series:
    """Write the times in the input's style, as numbers where it had numbers."""
    if "time" not in frame.columns:
        return pl.Series("timestamp", [None], dtype=pl.String).new_from_index(0, frame.height)
    stamp = times.write(frame["time"].cast(times.TIME), layout.time_style).alias("timestamp")
    column = layout.mapping.get("time", UBI["time"])
    if layout.types.get(column) in ("Int64", "Float64"):
        number = stamp.cast(pl.Int64, strict=False)
        return number if number.null_count() == stamp.null_count() else stamp
    return stamp


def _events(rows: pl.DataFrame) -> bytes:
    attributes = pl.struct(
        pl.struct(pl.col("url").alias("object_id")).alias("object"),
        pl.struct(pl.col("rank").alias("ordinal")).alias("position"),
    )
    return (
        rows.select(
            pl.lit("click").alias("action_name"),
            pl.col("query_id").cast(pl.String),
            pl.col("user").alias("client_id"),
            pl.col("timestamp"),
            attributes.alias("event_attributes"),
        )
        .write_ndjson()
        .encode()
    )


def _with_kept(fields: pl.DataFrame, kept: pl.DataFrame) -> bytes:
    """Add the kept columns as the values they were in the input."""
    import json

    lines = []
    for item, extra in zip(fields.iter_rows(named=True), kept.iter_rows(named=True), strict=True):
        values = {k: from_kept(v) if isinstance(v, str) else v for k, v in extra.items()}
        text = json.dumps({**item, **values}, ensure_ascii=False, separators=(",", ":"), default=str)
        lines.append(text + "\n")
    return "".join(lines).encode()

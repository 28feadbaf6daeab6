"""Reading OpenSearch UBI 1.3: queries and click events, joined on `query_id`, which is then forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.errors import Refused
from querycloak.formats import reasons, times
from querycloak.formats.clean import TimeParser
from querycloak.formats.columns import absent
from querycloak.formats.jsonl import Object, as_kept, as_text, kind_of, read_objects
from querycloak.formats.layout import UBI, default_layout
from querycloak.formats.streams import LineBlocks, Source, shown
from querycloak.formats.table import Faults, Options, Table, note
from querycloak.log import IntArray

#: Fields that identify people or join their records; never passed on, not even by name.
IDENTITY: Final = (
    *("query_id", "session_id", "client_id", "user_id", "message", "query"),
    *("query_attributes", "event_attributes", "query_response_id", "query_response_hit_ids"),
)
_ACTIONS: Final = ("index", "create", "update", "delete")
_FROM_EVENTS: Final = ("rank", "url")
_CLICK: Final = {"query_id": pl.String, "rank": pl.String, "url": pl.String, "user": pl.String}


def at_path(item: Object, path: str) -> Any:
    """Follow `a.b.c` into an object; a key that is written `a.b.c` counts too."""
    if path in item:
        return item[path]
    value: Any = item
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def unwrap(line: Object | str) -> Object | str | None:
    """Take a document out of its `_source` envelope; None for an action line of a bulk file."""
    if isinstance(line, str):
        return line
    source = line.get("_source")
    if isinstance(source, dict):
        return source
    if len(line) == 1 and next(iter(line)) in _ACTIONS and isinstance(next(iter(line.values())), dict):
        return None
    return line


def documents(source: Source) -> Iterator[tuple[list[Object | str], bool]]:
    """Give the documents of a dump, or reasons in place of broken ones, block by block."""
    for block in LineBlocks(source.chunks()):
        lines, may_hold_nul = read_objects(block)
        unwrapped = (unwrap(line) for line in lines)
        yield [line for line in unwrapped if line is not None], may_hold_nul


class UbiReader:
    """Gives the tables of a UBI dump: one row for each click, or for a query without clicks."""

    parse_time: TimeParser = staticmethod(times.parse)

    def __init__(self, queries: Source, events: Source | None, options: Options) -> None:
        self._queries, self._options = queries, options
        self._mapping = {**UBI, **options.mapping}
        self._dropped: dict[str, None] = {}
        self._refuse_identity()
        self._broken_events: list[str] = []
        self._clicks, self._users = self._read_events(events)
        self._matched = np.zeros(self._clicks.height, dtype=np.bool_)
        base = default_layout("ubi")
        self.layout = replace(
            base,
            columns=tuple(dict.fromkeys([*self._mapping.values(), *options.keep])),
            mapping=dict(self._mapping),
            kept=tuple(options.keep),
            compression=queries.compression,
        )
        self._known = False

    @property
    def dropped(self) -> tuple[str, ...]:
        """The fields seen so far that are not passed on."""
        return tuple(self._dropped)

    def tables(self) -> Iterator[Table]:
        """Give the rows in stretches; clicks that belong to no query come last, as bad rows."""
        first = 0
        for lines, may_hold_nul in documents(self._queries):
            table = self._table(lines, first, may_hold_nul)
            first = table.end
            yield table
        if bad := self._leftover(first):
            empty = pl.DataFrame({"row": pl.Series([], dtype=pl.Int64)})
            yield Table(empty, first, sum(rows.size for rows in bad.values()), bad)

    def _refuse_identity(self) -> None:
        for name in self._options.keep:
            if name.partition(".")[0] in IDENTITY:
                raise Refused(
                    f"the UBI field `{name}` is never passed on",
                    hint="it identifies people, or joins records to one another again",
                )

    def _read_events(self, events: Source | None) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Hold the clicks, and who made an event where the user is not in the queries."""
        clicks, users = [pl.DataFrame(schema=_CLICK)], [pl.DataFrame(schema=_CLICK)]
        for lines, _ in documents(events) if events is not None else ():
            items = [line for line in lines if isinstance(line, dict)]
            self._broken_events += [line for line in lines if isinstance(line, str)]
            self._forget(items, (self._mapping["rank"], self._mapping["url"]))
            made = [item for item in items if item.get("action_name") == "click"]
            clicks.append(self._event_frame(made))
            if "user" in self._options.mapping:
                users.append(self._event_frame(items))
        named = pl.concat(users).drop_nulls(["query_id", "user"]).unique("query_id", keep="first")
        return pl.concat(clicks).drop("user").with_row_index("click"), named.select(
            "query_id", user_then="user"
        )

    def _event_frame(self, items: list[Object]) -> pl.DataFrame:
        paths = {"query_id": "query_id", **{name: self._mapping[name] for name in ("rank", "url", "user")}}
        columns = {name: [as_text(at_path(item, path)) for item in items] for name, path in paths.items()}
        return pl.DataFrame(columns, schema=_CLICK)

    def _forget(self, items: list[Object], used: tuple[str, ...]) -> None:
        """Take note of the fields that are dropped."""
        for shape in dict.fromkeys(map(tuple, items)):
            self._dropped.update(dict.fromkeys(name for name in shape if name not in used))

    def _table(self, lines: list[Object | str], first: int, may_hold_nul: bool) -> Table:
        items = [line if isinstance(line, dict) else {} for line in lines]
        if any(items):
            self._learn([item for item in items if item])
        frame = self._query_frame(items).with_columns(
            reason=pl.Series([line if isinstance(line, str) else None for line in lines], dtype=pl.String)
        )
        joined = self._joined(frame).with_row_index("row", offset=first).cast({"row": pl.Int64})
        bad: Faults = {}
        for (reason,), group in joined.drop_nulls("reason").group_by("reason", maintain_order=True):
            note(bad, str(reason), group["row"].to_numpy())
        good = joined.filter(pl.col("reason").is_null()).drop("reason", "query_id", "click")
        return Table(good, first, joined.height, bad, may_hold_nul)

    def _query_frame(self, items: list[Object]) -> pl.DataFrame:
        columns = {"query_id": [as_text(item.get("query_id")) for item in items]}
        for name, path in self._mapping.items():
            if name not in _FROM_EVENTS and (name != "time" or "time" in self.layout.mapping):
                columns[name] = [as_text(at_path(item, path)) for item in items]
        for name in self._options.keep:
            columns[name] = [as_kept(at_path(item, name)) for item in items]
        return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))

    def _joined(self, frame: pl.DataFrame) -> pl.DataFrame:
        if "user" in self._options.mapping:
            frame = frame.join(self._users, on="query_id", how="left", maintain_order="left")
            frame = frame.with_columns(pl.coalesce("user", "user_then").alias("user")).drop("user_then")
        joined = frame.join(self._clicks, on="query_id", how="left", maintain_order="left_right")
        self._matched[joined["click"].drop_nulls().to_numpy()] = True
        return joined

    def _learn(self, items: list[Object]) -> None:
        """Look at the first documents: which fields there are, how times are written."""
        top = {path.partition(".")[0] for path in (*self._mapping.values(), *self._options.keep)}
        used = tuple({*self._mapping.values(), *self._options.keep, *top})
        self._forget(items, used)
        if self._known:
            return
        self._known = True
        present = {
            name for name, path in self._mapping.items() if any(at_path(i, path) is not None for i in items)
        }
        for name in self._options.required:
            if name not in present and name != "time" and not (name == "user" and self._users.height):
                raise absent(
                    self._mapping[name], list(dict.fromkeys(k for i in items for k in i)), self._where
                )
        if "time" not in present:
            mapping = {name: path for name, path in self.layout.mapping.items() if name != "time"}
            self.layout = replace(self.layout, mapping=mapping)
        stamp = self._mapping["time"]
        self.layout = replace(self.layout, types={stamp: kind_of([at_path(item, stamp) for item in items])})

    @property
    def _where(self) -> str:
        return shown(self._queries.path)

    def _leftover(self, first: int) -> Faults:
        """Number what came from the events alone after all queries."""
        alone = int((~self._matched).sum())
        names = [*self._broken_events, *[reasons.CLICK_ALONE] * alone]
        bad: Faults = {}
        for reason in dict.fromkeys(names):
            rows: IntArray = np.flatnonzero(np.asarray(names) == reason) + first
            note(bad, reason, rows)
        return bad

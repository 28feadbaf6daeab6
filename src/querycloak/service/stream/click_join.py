"""Joins UBI searches with their clicks, which arrive separately, in any order, and late."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import dropwhile
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.formats.validation import CLICK_ALONE
from querycloak.service.entries import EVENTS, QUERIES, SCHEMA, Schema

_AT: Final[Schema] = {"_at": pl.Int64}
_NOTHING: Final = pl.DataFrame(schema=SCHEMA | _AT)
#: The click of a search without clicks.
_NO_CLICK: Final = (0, None, None)
#: Arrival in microseconds, rank, address.
Click = tuple[int, int | None, str | None]


class _Queue:
    """Searches in order of arrival, as tables that are merged while they are small.

    Adding and removing cost O(log n) per search; a check that none is due costs O(1).
    """

    def __init__(self) -> None:
        self._chunks: deque[pl.DataFrame] = deque()
        self.first = 0  # arrival of the oldest
        self.height = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Add searches with `_at`, none older than those before."""
        if not frame.height:
            return
        self.height += frame.height
        chunks = self._chunks
        chunks.append(frame)
        while len(chunks) > 1 and chunks[-2].height < 2 * chunks[-1].height:
            last = chunks.pop()
            chunks[-1] = pl.concat([chunks[-1], last], rechunk=True)
        self.first = chunks[0]["_at"][0]

    def take(self, until: int) -> pl.DataFrame | None:
        """Remove and return the searches that arrived until then; None if there are none."""
        parts = []
        while self._chunks and self.first <= until:
            chunk = self._chunks.popleft()
            size = int(chunk["_at"].search_sorted(until, side="right"))
            parts.append(chunk[:size])
            self.height -= size
            if size < chunk.height:
                self._chunks.appendleft(chunk[size:])
            if self._chunks:
                self.first = self._chunks[0]["_at"][0]
        return pl.concat(parts) if parts else None

    def frame(self) -> pl.DataFrame:
        """Return all searches in order."""
        return pl.concat([pl.DataFrame(schema=QUERIES | _AT), *self._chunks])


class ClickJoiner:
    """Holds each search for its clicks for a stated time, by the time of entries.

    A call costs in proportion to what it adds and removes, not to what is held.
    """

    def __init__(self, wait: int) -> None:
        self._wait = wait
        self._queries = _Queue()
        self._awaited: Counter[str] = Counter()  # number of held searches by id
        self._clicks: dict[str, list[Click]] = {}  # by the id of their search, in order of arrival
        self._arrivals: deque[tuple[int, list[str]]] = deque()  # arrivals of clicks, and their ids
        self.dropped: Counter[str] = Counter()

    @property
    def held(self) -> int:
        """Number of held searches."""
        return self._queries.height

    def next_due(self) -> int | None:
        """Return the time at which a search or click is due, in microseconds; None if none is held."""
        while self._arrivals and not any(query_id in self._clicks for query_id in self._arrivals[0][1]):
            self._arrivals.popleft()
        firsts = [self._arrivals[0][0]] if self._arrivals else []
        firsts += [self._queries.first] if self._queries.height else []
        return min(firsts) + self._wait if firsts else None

    def add_queries(self, frame: pl.DataFrame, at: int) -> None:
        """Add searches."""
        self._queries.add(frame.with_columns(_at=pl.lit(at, pl.Int64)))
        self._awaited.update(frame["query_id"].to_list())

    def add_events(self, frame: pl.DataFrame, at: int) -> None:
        """Add clicks."""
        self._remember(at, frame.select(*EVENTS).rows())

    def _remember(self, at: int, events: Iterable[tuple[str, int | None, str | None]]) -> None:
        ids = []
        for query_id, rank, url in events:
            self._clicks.setdefault(query_id, []).append((at, rank, url))
            ids.append(query_id)
        if ids:
            self._arrivals.append((at, ids))

    def due(self, at: int) -> pl.DataFrame:
        """Remove and return the searches that are due, a row for each click; drop clicks without a search."""
        due = self._queries.take(at - self._wait)
        joined = _NOTHING if due is None else self._joined(due)
        self._drop_clicks(at - self._wait)
        return joined

    def _joined(self, due: pl.DataFrame) -> pl.DataFrame:
        """Return a row for each click of the searches; two searches with the same id both get its clicks."""
        ids = due["query_id"].to_list()
        clicks = [self._clicks.get(query_id) or [_NO_CLICK] for query_id in ids]
        self._remove(ids)
        sizes = np.array([len(some) for some in clicks])
        row = np.repeat(np.arange(sizes.size), sizes)
        distance = np.arange(row.size) - (np.cumsum(sizes) - sizes)[row]
        rank = pl.Series([click[1] for some in clicks for click in some], dtype=pl.Int64)
        url = pl.Series([click[2] for some in clicks for click in some], dtype=pl.String)
        joined = due[row].with_columns(
            rank=pl.coalesce(rank, "rank"),
            url=pl.coalesce(url, "url"),
            rows_since_head=pl.Series(distance, dtype=pl.Int32),
        )
        return joined.select(*_NOTHING.columns)

    def _remove(self, ids: list[str]) -> None:
        for query_id in ids:
            self._clicks.pop(query_id, None)
            self._awaited[query_id] -= 1
            if not self._awaited[query_id]:
                del self._awaited[query_id]

    def _drop_clicks(self, until: int) -> None:
        """Check each click once, after the waiting time of a search; drop those without a search."""
        while self._arrivals and self._arrivals[0][0] <= until:
            for query_id in self._arrivals.popleft()[1]:
                if query_id in self._clicks and query_id not in self._awaited:
                    clicks = self._clicks.pop(query_id)
                    newer = list(dropwhile(lambda click: click[0] <= until, clicks))
                    if len(newer) < len(clicks):
                        self.dropped[CLICK_ALONE] += len(clicks) - len(newer)
                    if newer:
                        self._clicks[query_id] = newer

    def held_by(self, name: str) -> pl.DataFrame:
        """Return the held searches of a user."""
        return self._queries.frame().filter(pl.col("user") == name)

    def erase(self, name: str) -> int:
        """Delete a user's searches and their clicks; return the number of searches."""
        mine = self.held_by(name)
        others = self._queries.frame().filter(pl.col("user").ne_missing(name))
        self._queries = _Queue()
        self._queries.add(others)
        self._remove(mine["query_id"].to_list())
        return mine.height

    def snapshot(self) -> dict[str, Any]:
        """Return the held searches and clicks, and the counts."""
        rows = [
            (query_id, rank, url, at) for query_id, some in self._clicks.items() for at, rank, url in some
        ]
        rows.sort(key=lambda row: row[-1])
        events = pl.DataFrame(rows, schema=EVENTS | _AT, orient="row")
        return {"queries": self._queries.frame(), "events": events, "dropped": dict(self.dropped)}

    def restore(self, parts: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._queries = _Queue()
        self._queries.add(parts["queries"])
        self._awaited = Counter(parts["queries"]["query_id"].to_list())
        self._clicks, self._arrivals = {}, deque()
        for query_id, rank, url, at in parts["events"].rows():
            self._remember(at, [(query_id, rank, url)])
        self.dropped = Counter(parts["dropped"])

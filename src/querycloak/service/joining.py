"""Joins searches with the clicks that follow: OpenSearch UBI sends both apart, in any order, and late."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.formats.validation import CLICK_ALONE
from querycloak.service.entries import SCHEMA, Schema

#: A search that waits for clicks: what a record has, the hash of its `query_id`, and when it came.
QUERIES: Final[Schema] = {**{n: k for n, k in SCHEMA.items() if n != "back"}, "query_id": pl.String}
#: A click that waits for its search.
EVENTS: Final[Schema] = {"query_id": pl.String, "rank": pl.Int64, "url": pl.String}
_AT: Final[Schema] = {"_at": pl.Int64}
_NOTHING: Final = pl.DataFrame(schema=SCHEMA | _AT)
#: Stands for the click of a search that has none.
_NO_CLICK: Final = (0, None, None)
#: When it came, its rank and its address.
Click = tuple[int, int | None, str | None]


class _Queue:
    """Searches in the order in which they came, as tables that are merged while they are small.

    Adding a search costs a logarithm of what waits, and so does taking one out; to see that none is due
    costs nothing.
    """

    def __init__(self) -> None:
        self._chunks: deque[pl.DataFrame] = deque()
        self._first = 0  # when the oldest came
        self.height = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Take in searches with `_at`, none older than those before."""
        if not frame.height:
            return
        self.height += frame.height
        chunks = self._chunks
        chunks.append(frame)
        while len(chunks) > 1 and chunks[-2].height < 2 * chunks[-1].height:
            last = chunks.pop()
            chunks[-1] = pl.concat([chunks[-1], last], rechunk=True)
        self._first = chunks[0]["_at"][0]

    def take(self, until: int) -> pl.DataFrame | None:
        """Take out what came until then, if anything did."""
        parts = []
        while self._chunks and self._first <= until:
            chunk = self._chunks.popleft()
            size = int(chunk["_at"].search_sorted(until, side="right"))
            parts.append(chunk[:size])
            self.height -= size
            if size < chunk.height:
                self._chunks.appendleft(chunk[size:])
            if self._chunks:
                self._first = self._chunks[0]["_at"][0]
        return pl.concat(parts) if parts else None

    def frame(self) -> pl.DataFrame:
        """Give all, in their order."""
        return pl.concat([pl.DataFrame(schema=QUERIES | _AT), *self._chunks])


class Joiner:
    """Lets each search wait for its clicks for a stated time, by the clock that entries carry.

    What a call costs depends on what comes and what leaves, not on what waits.
    """

    def __init__(self, wait: int) -> None:
        self._wait = wait
        self._queries = _Queue()
        self._awaited: Counter[str] = Counter()  # how many waiting searches have an id
        self._clicks: dict[str, list[Click]] = {}  # by the id of their search, as they came
        self._coming_of_age: deque[tuple[int, list[str]]] = deque()  # when clicks came, and their ids
        self.dropped: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """Count the searches that wait."""
        return self._queries.height

    @property
    def busy(self) -> bool:
        """Say whether anything waits for time to pass."""
        return bool(self._queries.height or self._clicks)

    def add_queries(self, frame: pl.DataFrame, at: int) -> None:
        """Take searches in."""
        self._queries.add(frame.with_columns(_at=pl.lit(at, pl.Int64)))
        self._awaited.update(frame["query_id"].to_list())

    def add_events(self, frame: pl.DataFrame, at: int) -> None:
        """Take clicks in."""
        self._remember(at, frame.select(*EVENTS).rows())

    def _remember(self, at: int, events: Iterable[tuple[str, int | None, str | None]]) -> None:
        ids = []
        for query_id, rank, url in events:
            self._clicks.setdefault(query_id, []).append((at, rank, url))
            ids.append(query_id)
        if ids:
            self._coming_of_age.append((at, ids))

    def due(self, at: int) -> pl.DataFrame:
        """Give the searches that have waited long enough, a row for each click; forget clicks of nobody's."""
        leaving = self._queries.take(at - self._wait)
        joined = _NOTHING if leaving is None else self._joined(leaving)
        self._forget_clicks(at - self._wait)
        return joined

    def _joined(self, leaving: pl.DataFrame) -> pl.DataFrame:
        """Put a row for each click in the place of searches; two of the same id both get its clicks."""
        ids = leaving["query_id"].to_list()
        clicks = [self._clicks.get(query_id) or [_NO_CLICK] for query_id in ids]
        self._let_go(ids)
        sizes = np.array([len(some) for some in clicks])
        row = np.repeat(np.arange(sizes.size), sizes)
        back = np.arange(row.size) - (np.cumsum(sizes) - sizes)[row]
        rank = pl.Series([click[1] for some in clicks for click in some], dtype=pl.Int64)
        url = pl.Series([click[2] for some in clicks for click in some], dtype=pl.String)
        joined = leaving[row].with_columns(
            rank=pl.coalesce(rank, "rank"), url=pl.coalesce(url, "url"), back=pl.Series(back, dtype=pl.Int32)
        )
        return joined.select(*_NOTHING.columns)

    def _let_go(self, ids: list[str]) -> None:
        """Forget the ids of searches that wait no more, and their clicks."""
        for query_id in ids:
            self._clicks.pop(query_id, None)
            self._awaited[query_id] -= 1
            if not self._awaited[query_id]:
                del self._awaited[query_id]

    def _forget_clicks(self, until: int) -> None:
        """Look once at each click that has waited as long as a search would; those of none are dropped."""
        while self._coming_of_age and self._coming_of_age[0][0] <= until:
            for query_id in self._coming_of_age.popleft()[1]:
                if query_id in self._clicks and query_id not in self._awaited:
                    self._drop_old(query_id, until)

    def _drop_old(self, query_id: str, until: int) -> None:
        clicks = self._clicks[query_id]
        old = next((place for place, click in enumerate(clicks) if click[0] > until), len(clicks))
        if old:
            self.dropped[CLICK_ALONE] += old
            del clicks[:old]
        if not clicks:
            del self._clicks[query_id]

    def held_by(self, name: str) -> pl.DataFrame:
        """Give the searches of a person that wait."""
        return self._queries.frame().filter(pl.col("user") == name)

    def erase(self, name: str) -> int:
        """Forget a person's searches and their clicks; say how many searches that were."""
        mine = self.held_by(name)
        others = self._queries.frame().filter(pl.col("user").ne_missing(name))
        self._queries = _Queue()
        self._queries.add(others)
        self._let_go(mine["query_id"].to_list())
        return mine.height

    def snapshot(self) -> dict[str, Any]:
        """Give what waits, and the counts."""
        rows = [
            (query_id, rank, url, at) for query_id, some in self._clicks.items() for at, rank, url in some
        ]
        rows.sort(key=lambda row: row[-1])
        events = pl.DataFrame(rows, schema=EVENTS | _AT, orient="row")
        return {"queries": self._queries.frame(), "events": events, "dropped": dict(self.dropped)}

    def restore(self, parts: Mapping[str, Any]) -> None:
        """Carry on from a snapshot."""
        self._queries = _Queue()
        self._queries.add(parts["queries"])
        self._awaited = Counter(parts["queries"]["query_id"].to_list())
        self._clicks, self._coming_of_age = {}, deque()
        for query_id, rank, url, at in parts["events"].rows():
            self._remember(at, [(query_id, rank, url)])
        self.dropped = Counter(parts["dropped"])

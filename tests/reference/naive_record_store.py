"""The plainest store of records: a list of rows."""

from __future__ import annotations

import polars as pl


class NaiveRecordStore:
    """Keeps rows in a list and finds them by looking at all of them."""

    def __init__(self) -> None:
        self._rows: list[dict] = []

    def add(self, frame: pl.DataFrame) -> None:
        self._rows += frame.to_dicts()

    def take(self, heads: list[int]) -> list[tuple[int, int]]:
        """Return each row with the place of its search among the wanted ones."""
        return [
            (row["row"], place)
            for place, head in enumerate(heads)
            for row in self._rows
            if row["_head"] == head
        ]

    def remove(self, heads: list[int]) -> None:
        self._rows = [row for row in self._rows if row["_head"] not in heads]

    def rows(self) -> list[int]:
        return [row["row"] for row in self._rows]

"""Hypothesis strategies for small logs that collide a lot: few people, few queries, few moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
from hypothesis import strategies as st

from querycloak.log import CANONICAL

#: What records are made of.
USERS = ("ann", "bob", "cat", "dan", "eve", "flo")
QUERIES = (
    "weather",
    "cheap flights",
    "zebra 123",
    "mail me at someone@invented.example",
    "mary johnson",
    "call 555 010 9999",
    "4111 1111 1111 1111",
    "hotels in london",
    "one two three four five six seven eight nine",
    "naïve café ſmith",
)
RANKS = (None, 1, 2, 7)
URLS = (None, "http://made-up.example/a", "http://made-up.example/b")
CATEGORIES = ("Sports/Soccer/Cup", "Sports/Soccer", "Sports/Tennis", "News/Weather", "Home", None)
START = datetime(2006, 3, 1, tzinfo=UTC)


def records() -> st.SearchStrategy[dict[str, Any]]:
    """Make one search."""
    return st.fixed_dictionaries(
        {
            "user": st.sampled_from(USERS),
            "query": st.sampled_from(QUERIES),
            "time": st.integers(0, 40).map(lambda step: START + timedelta(seconds=20 * step)),
            "rank": st.sampled_from(RANKS),
            "url": st.sampled_from(URLS),
            "category": st.sampled_from(CATEGORIES),
        }
    )


def logs(min_size: int = 0, max_size: int = 40) -> st.SearchStrategy[pl.DataFrame]:
    """Make a small log as a canonical frame."""
    return st.lists(records(), min_size=min_size, max_size=max_size).map(frame_of)


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Make a canonical frame of plain records."""
    schema: Any = dict.fromkeys(CANONICAL, pl.String) | {"time": pl.Datetime("us", "UTC"), "rank": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema)
    return frame.with_row_index("row").cast({"row": pl.Int64})


def cuts(most: int = 3) -> st.SearchStrategy[list[int]]:
    """Choose where to cut a log."""
    return st.lists(st.integers(0, 40), max_size=most)

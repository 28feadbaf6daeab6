"""Made-up traces with fakes: what the attack sees, the log behind it, and the truth about it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
import polars as pl

WORDS = ("river", "garden", "music", "travel", "recipe", "football", "history", "weather", "market", "camera")
#: A Monday.
START = datetime(2006, 3, 6)


class Trace(NamedTuple):
    release: pl.DataFrame
    original: pl.DataFrame
    truth: pl.DataFrame


def drawn(people: int = 24, searches: int = 40, seed: int = 1, marked: bool = False) -> Trace:
    """Everybody's searches are drawn alike, and a coin says which of them are fake.

    So nothing tells fakes, unless they are `marked`: then real searches have a click and fakes have none.
    There are no addresses, so that `D_NumberClicks` alone can see it.
    """
    chance = np.random.default_rng(seed)
    size = people * searches
    words = chance.integers(0, len(WORDS), (size, 2))
    fake = chance.random(size) < 0.5
    frame = pl.DataFrame(
        {
            "user": [f"person {n}" for n in np.repeat(np.arange(people), searches)],
            "query": [f"{WORDS[a]} {WORDS[b]}" for a, b in words],
            "time": [START + timedelta(seconds=int(n)) for n in chance.integers(0, 86_400 * 60, size)],
            "rank": [None if marked and gone else 1 for gone in fake],
        },
        schema_overrides={"rank": pl.Int64},
    )
    return labelled(frame, fake)


def labelled(frame: pl.DataFrame, fake: np.ndarray) -> Trace:
    """Make a trace of rows of which some are fake."""
    frame = frame.with_columns(fake=pl.Series(fake))
    if "time" in frame.columns:
        frame = frame.sort("time", maintain_order=True)
    frame = frame.with_row_index("released_row").cast({"released_row": pl.Int64})
    original = frame.filter(~pl.col("fake")).drop("released_row", "fake").with_row_index("row")
    count = (~pl.col("fake")).cast(pl.Int64).cum_sum() - 1
    truth = frame.select(
        "released_row",
        original_row=pl.when(~pl.col("fake")).then(count),
        original_user="user",
        released_after="released_row",
        fake="fake",
    )
    return Trace(frame.drop("fake"), original, truth)

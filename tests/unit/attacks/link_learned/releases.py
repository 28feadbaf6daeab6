"""Made-up releases without fakes: labels are drawn anew for each row, and only the truth says whose it is."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl

from tests.unit.attacks.link_learned.traces import START, WORDS, Trace


def exchanged(people: int = 30, searches: int = 24, seed: int = 1, marked: bool = False) -> Trace:
    """Everybody's searches are drawn alike, so nothing tells whose a record is.

    Unless they are `marked`: then everybody clicks on addresses of her own, which `S_UrlTerms` can see.
    """
    chance = np.random.default_rng(seed)
    size = people * searches
    who = np.repeat(np.arange(people), searches)
    words = chance.integers(0, len(WORDS), (size, 2))
    site = who if marked else chance.integers(0, people, size)
    return released(
        pl.DataFrame(
            {
                "user": [f"person {n}" for n in who],
                "query": [f"{WORDS[a]} {WORDS[b]}" for a, b in words],
                "time": [START + timedelta(seconds=int(n)) for n in chance.integers(0, 86_400 * 60, size)],
                "rank": [1] * size,
                "url": [f"http://www.site{n}.example/" for n in site],
            }
        ),
        chance.permutation(who),
    )


def released(log: pl.DataFrame, label: np.ndarray) -> Trace:
    """Release a log in the order of its times, under other labels."""
    original = log.with_row_index("row").cast({"row": pl.Int64})
    shown = original.with_columns(label=pl.Series([f"label {n}" for n in label], dtype=pl.String))
    shown = shown.sort("time", maintain_order=True) if "time" in log.columns else shown
    shown = shown.with_row_index("released_row").cast({"released_row": pl.Int64})
    truth = shown.select(
        "released_row", original_row="row", original_user="user", released_after="released_row"
    )
    release = shown.with_columns(user="label").drop("row", "label")
    return Trace(release, original, truth)

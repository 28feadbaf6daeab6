"""The words of released records, as numbers: what tells that two searches belong together."""

from __future__ import annotations

import polars as pl


def words_of(release: pl.DataFrame, rarest: int = 2, commonest: int = 200) -> pl.DataFrame:
    """List (row, word) for words that stand in some rows but not in many; words are 64-bit hashes."""
    queries = release.select(row=pl.int_range(pl.len(), dtype=pl.Int64), query="query").drop_nulls()
    words = queries.select(
        "row", word=pl.col("query").str.to_lowercase().str.extract_all(r"[\p{L}\p{Nd}]{3,}")
    )
    each = (
        words.explode("word").drop_nulls().select("row", pl.col("word").hash(7)).unique(maintain_order=True)
    )
    known = each.group_by("word").agg(n=pl.len()).filter(pl.col("n").is_between(rarest, commonest))
    return each.join(known, on="word", maintain_order="left")

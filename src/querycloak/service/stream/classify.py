"""Categories for records without one; each distinct pair of query and address is classified once."""

from __future__ import annotations

from itertools import islice
from typing import Final

import polars as pl

from querycloak import text

#: Answers that are cached, at most; when there are more, the newer half is kept.
CACHED: Final = 200_000
_KEY: Final = ("query", "url")
Key = tuple[str, str | None]


class QueryClassifier:
    """A classifier with a cache of its answers."""

    def __init__(self, taxonomy: str | None = None) -> None:
        self._taxonomy = text.load_taxonomy(taxonomy) if taxonomy else None
        self._cache: dict[Key, str | None] = {}

    def fill(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return records with a category where they had none."""
        if not frame["category"].null_count():
            return frame
        keys = frame.filter(pl.col("category").is_null()).select(_KEY).unique(maintain_order=True)
        pairs: list[Key] = keys.rows()
        answers = {pair: self._cache[pair] for pair in pairs if pair in self._cache}
        answers |= self._classify([pair for pair in pairs if pair not in answers])
        found = keys.with_columns(_found=pl.Series([answers[pair] for pair in pairs], dtype=pl.String))
        joined = frame.join(found, on=_KEY, how="left", nulls_equal=True, maintain_order="left")
        filled = joined.with_columns(category=pl.coalesce("category", "_found"))
        return filled.drop("_found").select(frame.columns)

    def _classify(self, pairs: list[Key]) -> dict[Key, str | None]:
        """Classify pairs and cache the answers; as for files, the address counts if the query is unknown."""
        if not pairs:
            return {}
        schema = {"query": pl.String, "url": pl.String}
        frame = pl.DataFrame(pairs, schema=schema, orient="row").with_row_index("row")
        categories = text.classify_log(frame.with_columns(user=pl.lit("")), taxonomy=self._taxonomy)[
            "category"
        ]
        answers = dict(zip(pairs, categories.to_list(), strict=True))
        self._cache |= answers
        if len(self._cache) > CACHED:
            self._cache = dict(islice(self._cache.items(), len(self._cache) - CACHED // 2, None))
        return answers

    def clear_cache(self) -> None:
        """Drop all cached queries, after an erasure."""
        self._cache.clear()

"""`queries_kept` counts texts, not records."""

from __future__ import annotations

import polars as pl

from querycloak.measures.base import LogPair
from querycloak.measures.queries_kept import QueriesKept


def test_a_text_counts_once():
    before, after = pl.DataFrame({"query": ["a", "a", "a", "b"]}), pl.DataFrame({"query": ["b", "b", "c"]})
    assert QueriesKept()(LogPair(before, after)) == 0.5

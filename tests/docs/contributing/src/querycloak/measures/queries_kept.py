"""`queries_kept`: how many of the texts are left."""

from __future__ import annotations

import polars as pl

from querycloak.measures.base import Kind, LogPair, Measure, Unit


class QueriesKept(Measure):
    """The share of the different query texts of the original that the release contains."""

    name, help = "queries_kept", "share of different query texts that are in the release"
    unit, kind = Unit.SHARE, Kind.USE

    def __call__(self, pair: LogPair) -> float:
        """Return the share; a measure for which a column is missing is not applicable."""
        before, after = (texts.unique() for texts in pair.both("query"))
        return float(before.is_in(pl.Series(after).implode()).mean() or 0.0)

"""How often the label of a released record stands over texts that a person is known to have asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak.attacks.link_learned.words import FloatArray


@dataclass(frozen=True)
class LabelShares:
    """Of each text that somebody is known to have asked: how many records each label has with it.

    `counts` is `query, user, here, labels`: records of the text under the label, and all labels that it has.
    """

    counts: pl.DataFrame

    @classmethod
    def of(cls, release: pl.DataFrame, texts: pl.Series) -> LabelShares:
        """Look these texts up in a release."""
        wanted = pl.DataFrame({"query": texts.drop_nulls().unique()})
        rows = release.select("query", "user").drop_nulls().join(wanted, on="query", how="semi")
        counts = rows.group_by("query", "user").agg(here=pl.len()).sort("query", "user")
        return cls(counts.with_columns(labels=pl.len().over("query")))

    def __call__(self, known: pl.Series, records: pl.DataFrame) -> FloatArray:
        """Return for each record the share of known searches found under its label, the record aside.

        A text under many labels counts less: by one over their number.
        """
        asked = pl.DataFrame({"query": known}).drop_nulls()
        texts = asked.group_by("query").agg(times=pl.len()).join(self.counts, on="query")
        found = records.select("query", "user").with_row_index("at").join(
            texts.rename({"query": "text"}), on="user", how="inner"
        )  # fmt: skip
        itself = (pl.col("text") == pl.col("query")) & (pl.col("here") == 1)
        weight = pl.col("times") / pl.col("labels")
        each = found.filter(~itself.fill_null(value=False)).group_by("at").agg(total=weight.sum())
        shares = np.zeros(records.height)
        shares[each["at"].to_numpy()] = each["total"].to_numpy() / max(1, len(known))
        return shares

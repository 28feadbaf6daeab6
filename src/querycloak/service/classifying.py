"""Gives records the categories that they came without, each different query once."""

from __future__ import annotations

from itertools import islice

import polars as pl

from querycloak import text

#: How many queries are remembered, at most; when there are more, only the newer half of these is kept.
REMEMBERED = 200_000


class Classifying:
    """Looks queries up in what it said before, and asks the classifier about the rest."""

    def __init__(self, classifier: str = "lexical", taxonomy: str | None = None) -> None:
        self._taxonomy = text.load_taxonomy(taxonomy) if taxonomy else None
        self._classifier = classifier
        self._known: dict[str, str | None] = {}

    def fill(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Give records a category where they have none."""
        if not frame["category"].null_count():
            return frame
        asked = frame.filter(pl.col("category").is_null())["query"].unique(maintain_order=True).to_list()
        if not asked:
            return frame
        answers = {query: self._known[query] for query in asked if query in self._known}
        answers |= self._learned([query for query in asked if query not in answers])
        found = pl.DataFrame(
            {"query": asked, "_found": [answers[query] for query in asked]},
            schema={"query": pl.String, "_found": pl.String},
        )
        joined = frame.join(found, on="query", how="left", maintain_order="left")
        filled = joined.with_columns(category=pl.coalesce("category", "_found"))
        return filled.drop("_found").select(frame.columns)

    def _learned(self, fresh: list[str]) -> dict[str, str | None]:
        """Ask about queries, and remember the answers as far as there is room."""
        if not fresh:
            return {}
        asked = pl.DataFrame({"row": range(len(fresh)), "user": "", "query": fresh})
        answer = text.classify_log(asked, classifier=self._classifier, taxonomy=self._taxonomy)
        learned = dict(zip(fresh, answer["category"].to_list(), strict=True))
        self._known |= learned
        if len(self._known) > REMEMBERED:
            self._known = dict(islice(self._known.items(), len(self._known) - REMEMBERED // 2, None))
        return learned

    def forget(self) -> None:
        """Forget all queries: somebody asked to be erased."""
        self._known.clear()

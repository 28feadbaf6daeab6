"""`link-background`: someone knows a few searches of a person, and looks for the person's label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.attacks.finding import NotApplicable
from querycloak.attacks.protocol import Attack, AttackerView, Identification
from querycloak.settings import setting


class LinkBackground(Attack):
    """Knows some queries of each target and guesses the label that carries them best.

    Each known string votes for the labels of the released rows that show it; a string that few rows show
    counts for more. A label is a candidate while it carries every known string that was released.

    Limits: it knows exact strings only; a text that was rewritten or withheld tells it nothing.
    """

    name = "link-background"
    game = "identification"
    knows = frozenset({"samples"})

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `link-background`."""

        queries: int = setting(3, kind=int, at_least=1, at_most=100, help="searches known of each target")
        targets: int = setting(1000, kind=int, at_least=1, help="people to look for")
        seed: int = setting(0, kind=int, help="which people and which of their searches")

    def guess(self, view: AttackerView) -> Identification:
        """Guess each target's label."""
        known = view.knowledge["samples"]
        if known.is_empty():
            raise NotApplicable("nobody in the original has so many searches")
        shown = view.release.filter(pl.col("user").is_not_null()).select("query", label="user")
        rows = shown.join(known.select("query").unique(), on="query", how="semi")
        rare = rows.group_by("query").agg(rows=pl.len())
        votes = (
            known.unique().join(rows.unique(), on="query").join(rare, on="query")
            .group_by("user", "label").agg(vote=(1 / pl.col("rows")).sum(), strings=pl.len())
        )  # fmt: skip
        seen = known.unique().join(rare, on="query").group_by("user").agg(seen=pl.len())
        return self._answer(known["user"].unique().sort(), votes, seen)

    @staticmethod
    def _answer(targets: pl.Series, votes: pl.DataFrame, seen: pl.DataFrame) -> Identification:
        best = votes.sort("vote", "label", descending=[True, False]).unique("user", keep="first")
        full = votes.join(seen, on="user").filter(pl.col("strings") == pl.col("seen"))
        counts = full.group_by("user").agg(candidates=pl.len())
        table = targets.to_frame("user").join(best.select("user", "label"), on="user", how="left")
        table = table.join(counts, on="user", how="left").sort("user")
        candidates = table["candidates"].fill_null(0).cast(pl.Int64).to_numpy()
        found = candidates[candidates > 0]
        details = {
            "targets_with_a_released_string": seen.height,
            "candidates_median": float(np.median(found)) if found.size else None,
            "share_with_one_candidate": float(np.mean(found == 1)) if found.size else None,
        }
        return Identification(table["user"], table["label"], candidates, details)

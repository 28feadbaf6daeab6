"""`link-volume`: an attacker who knows how many searches everyone made bets on the heavy ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from querycloak.attacks.link_window import WindowSettings, never_own, reach_of
from querycloak.attacks.protocol import Attack, AttackerView, Attribution
from querycloak.attacks.seen import Seen, attackers_k, attackers_level, see
from querycloak.kernels import volume_votes, window_votes

#: Strings that more rows show than this say nothing about who sits with whom.
_COMMON = 12


class LinkVolume(Attack):
    """Knows every user's number of searches, and prefers who searches most among those it could be.

    Against `swap` those are the labels near a record, as for `link-window`. Against `cohort` they are the
    labels that share rare strings with the record's own label: a person who repeats a rare string shows
    it under several labels of her cohort. The heaviest of the k likeliest is the guess.

    Limits: no bound is claimed against it, because volumes are outside of what labels can hide.
    """

    name = "link-volume"
    game = "attribution"
    knows = frozenset({"volumes"})

    Settings = WindowSettings

    def guess(self, view: AttackerView) -> Attribution:
        """Guess an author for each row that has a label."""
        chosen: Any = self.settings
        k, level = attackers_k(view, chosen.k), attackers_level(view, chosen.level)
        seen = see(view.release, level)
        volume = self._volumes(view, seen)
        if view.method() == "swap":
            best = self._nearby(seen, volume, k, reach_of(chosen.reach, k), never_own(view))
        else:
            best = heaviest_companion(seen, volume, k)[seen.label]
        return Attribution(seen.spell(best), {"attacker_k": k, "attacker_level": level})

    @staticmethod
    def _volumes(view: AttackerView, seen: Seen) -> Any:
        known = view.knowledge["volumes"].drop_nulls("user")
        codes = seen.labels.encode(known["user"])
        volume = np.zeros(max(seen.people, int(codes.max(initial=-1)) + 1), np.float64)
        volume[codes] = known["count"].to_numpy()
        return volume

    @staticmethod
    def _nearby(seen: Seen, volume: Any, k: int, reach: int, barred: bool) -> Any:
        best = np.empty(seen.label.size, np.int64)
        fall = window_votes.falling(k, reach).astype(np.float64)
        volume_votes.heaviest_nearby(seen.label, seen.category, fall, volume, barred, best)
        return best


def heaviest_companion(seen: Seen, volume: Any, k: int) -> Any:
    """Give for each label the heaviest among itself and the k - 1 labels that share most rare strings."""
    rows = pl.DataFrame({"label": seen.label, "string": seen.string}).filter(pl.col("string") >= 0)
    rare = rows.group_by("string").agg(n=pl.len()).filter(pl.col("n").is_between(2, _COMMON))
    shared = rows.join(rare, on="string").unique()
    pairs = shared.join(shared.select("string", other="label"), on="string").filter(
        pl.col("label") != pl.col("other")
    )
    ties = pairs.group_by("label", "other").agg(tie=(1 / pl.col("n")).sum())
    near = ties.sort("tie", "other", descending=[True, False]).group_by("label").head(k - 1)
    near = near.with_columns(volume=pl.Series(volume[near["other"].to_numpy()]))
    top = near.sort("volume", "other", descending=[True, False]).unique("label", keep="first")
    best = np.arange(max(seen.people, 1))
    label, other = top["label"].to_numpy(), top["other"].to_numpy()
    heavier = volume[other] > volume[label]
    best[label[heavier]] = other[heavier]
    return best

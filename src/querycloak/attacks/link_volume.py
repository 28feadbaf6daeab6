"""`link-volume`: who knows how much each person searches guesses the busiest one that it may have been."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from querycloak.attacks.finding import NotApplicable
from querycloak.attacks.link_repeat import LinkRepeat, by_string, cohorts
from querycloak.attacks.link_window import never_own
from querycloak.attacks.protocol import Attack, AttackerView, Attribution
from querycloak.attacks.seen import IntArray, Seen, attackers_k, see


class LinkVolume(Attack):
    """Uses volumes known from elsewhere: among those it may have been, whoever searches most.

    Against `cohort` it first tells cohorts apart: labels of one cohort meet on strings that one member
    repeats. Then it guesses the busiest member of the cohort that a record's label belongs to. That is
    right as often as the busiest member's share of the cohort's records, which labels cannot hide.

    Against `swap` volumes add nothing: the release shows them, since each label appears as often as its
    owner searched. So the guesses are those of `link-repeat`, and `volumes_shown` is the correlation of
    volumes with the counts of labels.

    Limits: no bound is claimed. It needs volumes under the names that the release uses.
    """

    name = "link-volume"
    game = "attribution"
    knows = frozenset({"volumes"})

    @dataclass(frozen=True, kw_only=True)
    class Settings(LinkRepeat.Settings):
        """Settings of `link-volume`: those of `link-repeat`, which it builds on."""

    def guess(self, view: AttackerView) -> Attribution:
        """Guess an author for each row that has a label."""
        if "volumes" not in view.knowledge:
            raise NotApplicable("the attacker knows no volumes")
        if never_own(view):
            found = LinkRepeat(self.settings).guess(view)
            return Attribution(found.guess, found.details | {"volumes_shown": _shown(view)})
        chosen: Any = self.settings
        k = attackers_k(view, chosen.k)
        seen = see(view.release, 0)
        sets = cohorts(seen, by_string(seen), k)
        busiest = _busiest(sets, _volumes(seen, view.knowledge["volumes"]))
        complete = int(np.count_nonzero(np.bincount(sets) == k))
        return Attribution(seen.spell(busiest[seen.label]), {"attacker_k": k, "cohorts_told_apart": complete})


def _shown(view: AttackerView) -> float | None:
    """Correlate how much people search with how often their labels appear."""
    counts = view.release.group_by("user").agg(shown=pl.len())
    both = view.knowledge["volumes"].join(counts, on="user", how="left").fill_null(0)
    found = both.select(pl.corr(pl.col("shown").cast(pl.Float64), pl.col("count").cast(pl.Float64))).item()
    return None if found is None or np.isnan(found) else float(found)


def _volumes(seen: Seen, volumes: pl.DataFrame) -> IntArray:
    """Give each label's volume; a label that nobody is known by has none."""
    names = pl.DataFrame({"user": seen.labels.texts()})
    known = volumes.select(pl.col("user").cast(pl.String), pl.col("count").cast(pl.Int64)).unique("user")
    return names.join(known, on="user", how="left", maintain_order="left")["count"].fill_null(0).to_numpy()


def _busiest(sets: IntArray, volume: IntArray) -> IntArray:
    """Give for each label the busiest label of its set; of equally busy ones the one seen first."""
    order = np.lexsort((-volume[: sets.size], sets))
    first = np.flatnonzero(np.diff(sets[order], prepend=-1))
    of_set = np.full(sets.size, -1, np.int64)
    of_set[sets[order[first]]] = order[first]
    return of_set[sets]

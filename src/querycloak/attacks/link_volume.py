"""`link-volume`: who knows how much each person searches guesses the busiest one that it may have been."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from querycloak.attacks.auxiliary import KnownVolumes, Request
from querycloak.attacks.base import Attack, AttackerView, Attribution
from querycloak.attacks.link_repeat import LinkRepeat, by_string, cohorts
from querycloak.attacks.release_order import ReleaseStream, read_stream
from querycloak.errors import NotApplicable
from querycloak.log import IntArray


class LinkVolume(Attack):
    """Uses volumes known from elsewhere: of the possible authors, it names the one who searches most.

    Against `cohort` it first tells cohorts apart: labels of one cohort meet on strings that one member
    repeats. Then it guesses the busiest member of the cohort that a record's label belongs to. That is
    right as often as the busiest member's share of the cohort's records, which labels cannot hide.

    Against `swap` volumes add nothing: the release shows them, since each label appears as often as its
    owner searched. So the guesses are those of `link-repeat`, and `volumes_shown` is the correlation of
    volumes with the counts of labels.

    Limits: no bound is claimed. It needs kept labels: volumes of users tell nothing about pseudonyms.
    """

    name = "link-volume"
    game = "attribution"

    Settings = LinkRepeat.Settings

    def requests(self) -> tuple[Request, ...]:
        """Return a request for the volumes of all users."""
        return (KnownVolumes(),)

    def guess(self, view: AttackerView) -> Attribution:
        """Guess an author for each row that has a label."""
        if KnownVolumes.name not in view.auxiliary:
            raise NotApplicable("the attacker knows no volumes")
        if view.never_author:
            found = LinkRepeat(self.settings).guess(view)
            return Attribution(found.guess, found.details | {"volumes_shown": _shown(view)})
        volumes = view.auxiliary[KnownVolumes.name]
        if not volumes["user"].is_in(view.release["user"].unique().implode()).any():
            raise NotApplicable("labels are pseudonyms, and nobody knows whose volume belongs to which")
        chosen: Any = self.settings
        k = view.assumed_k(chosen.k)
        seen = read_stream(view.release, 0)
        sets = cohorts(seen, by_string(seen), k)
        busiest = _busiest(sets, _volumes(seen, volumes))
        complete = int(np.count_nonzero(np.bincount(sets) == k))
        return Attribution(seen.spell(busiest[seen.label]), {"attacker_k": k, "cohorts_told_apart": complete})


def _shown(view: AttackerView) -> float | None:
    """Correlate how much people search with how often their labels appear."""
    counts = view.release.group_by("user").agg(shown=pl.len())
    both = view.auxiliary[KnownVolumes.name].join(counts, on="user", how="left").fill_null(0)
    found = both.select(pl.corr(pl.col("shown").cast(pl.Float64), pl.col("count").cast(pl.Float64))).item()
    return None if found is None or np.isnan(found) else float(found)


def _volumes(seen: ReleaseStream, volumes: pl.DataFrame) -> IntArray:
    """Return each label's volume; a label that nobody is known by has none."""
    names = pl.DataFrame({"user": seen.labels.texts()})
    known = volumes.select(pl.col("user").cast(pl.String), pl.col("count").cast(pl.Int64)).unique("user")
    return names.join(known, on="user", how="left", maintain_order="left")["count"].fill_null(0).to_numpy()


def _busiest(sets: IntArray, volume: IntArray) -> IntArray:
    """Return for each label the busiest label of its set; of equally busy ones the one seen first."""
    order = np.lexsort((-volume[: sets.size], sets))
    first = np.flatnonzero(np.diff(sets[order], prepend=-1))
    of_set = np.full(sets.size, -1, np.int64)
    of_set[sets[order[first]]] = order[first]
    return of_set[sets]

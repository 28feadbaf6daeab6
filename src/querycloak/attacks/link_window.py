"""`link-window`: the author's own token left near the record, so it is one of the labels nearby."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from querycloak.attacks.base import AssumedSettings, Attack, AttackerView, Attribution
from querycloak.attacks.release_order import Codes, ReleaseStream, read_stream, windows
from querycloak.settings import setting

#: Without a set reach, a window goes this many k to both sides, and at most so many records.
REACH_IN_K, LONGEST_REACH = 6, 128


@dataclass(frozen=True, kw_only=True)
class WindowSettings(AssumedSettings):
    """Settings of every attack by release order."""

    reach: int = setting(
        0,
        at_least=0,
        at_most=10_000,
        help="records of the category looked at on both sides; 0 takes 6 k, at most 128",
    )


class LinkWindow(Attack):
    """Guesses the label that is nearest and most often near a record, in release order within its category.

    A record and its author's id wait in the same bag, and each leaves it at random: so the id leaves as
    the label of some record close by. Every label near a record gets exp(-distance / k) for each time
    it is seen; the largest sum is the guess. Against `swap` a record's own label is left out, since
    the certificate says that it is never the author's.

    Limits: it looks at the release order, so a release in shuffled order defeats it. Against `cohort` the
    order tells nothing, and what is left is the record's own label: right once in k.
    """

    name = "link-window"
    game = "attribution"

    Settings = WindowSettings

    def guess(self, view: AttackerView) -> Attribution:
        """Guess an author for each row that has a label."""
        chosen: Any = self.settings
        k, level = view.assumed_k(chosen.k), view.assumed_level(chosen.level)
        reach = reach_of(chosen.reach, k)
        seen = read_stream(view.release, level)
        barred = view.never_author
        details = {"attacker_k": k, "attacker_level": level, "reach": reach, "own_label_excluded": barred}
        return Attribution(seen.spell(nearest(seen, k, reach, barred)), details)


def reach_of(chosen: int, k: int) -> int:
    """Return the reach of a window to each side."""
    return chosen or min(REACH_IN_K * k, LONGEST_REACH)


def nearest(seen: ReleaseStream, k: int, reach: int, barred: bool) -> Codes:
    """Guess for each place the label with the largest sum of exp(-distance / k) around it."""
    best = np.empty(seen.label.size, np.int32)
    fall = windows.falling(k, reach)
    centre = np.arange(seen.label.size, dtype=np.int32)
    sums = np.zeros(seen.people, np.float32)
    arrays = seen.label, seen.category, seen.starts, centre, fall, fall, barred, sums
    windows.best_nearby(*arrays, 0, seen.label.size, best)
    return best

"""`link-repeat`: who is near every time a string is asked has probably asked it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.attacks.link_window import WindowSettings, never_own, reach_of
from querycloak.attacks.protocol import Attack, AttackerView, Attribution
from querycloak.attacks.seen import Codes, IntArray, Seen, attackers_k, attackers_level, see
from querycloak.kernels import relink, repeat_em, window_votes
from querycloak.settings import setting

#: Records of a group that are settled together, and how many labels more each person is taken to have.
TOGETHER, STEADY = 4_096, 10.0
#: Tokens wait a little longer than k records, since the bag holds several tokens of busy people.
SCALE_IN_K = 1.3

FloatArray = npt.NDArray[np.float32]


class LinkRepeat(Attack):
    """Combines the windows of all records with the same string: one author is near all of them.

    Each row starts from the sums of `link-window`. All rows with one string share a mixture of authors,
    found by expectation–maximisation: a person who is likely for the other rows gains here, the more so
    the fewer records that person has in the category (counts of labels are counts of authors, since `swap`
    conserves them). Rows whose string is unique are guessed as by `link-window`.

    Limits: a string asked by thousands says little. Against `cohort`, whose labels do not depend on
    anything, it guesses the label most often seen on a string among those of one cohort, as far as
    cohorts can be told apart: right once in k.
    """

    name = "link-repeat"
    game = "attribution"

    @dataclass(frozen=True, kw_only=True)
    class Settings(WindowSettings):
        """Settings of `link-repeat`."""

        rounds: int = setting(6, kind=int, at_least=1, at_most=100, help="rounds of expectation–maximisation")
        spread: float = setting(
            1.0, kind=float, at_least=0.0, help="how readily a repeated string has another author each time"
        )

    def guess(self, view: AttackerView) -> Attribution:
        """Guess an author for each row that has a label."""
        chosen: Any = self.settings
        k, level = attackers_k(view, chosen.k), attackers_level(view, chosen.level)
        seen = see(view.release, level)
        reach = reach_of(chosen.reach, k)
        details = {"attacker_k": k, "attacker_level": level, "reach": reach}
        order, groups = by_string(seen)
        details["repeated_strings"] = int(np.count_nonzero(np.diff(groups) > 1))
        fall = window_votes.falling(SCALE_IN_K * k, reach)
        centre = np.arange(seen.label.size, dtype=np.int32)
        who, _ = settle(
            seen, (order, groups), (centre, fall, fall), never_own(view), chosen.spread, chosen.rounds
        )
        return Attribution(seen.spell(who[:, 0]), details)


def by_string(seen: Seen) -> tuple[IntArray, IntArray]:
    """Group places by string, in stream order within; places without a string stay alone."""
    codes = seen.string.astype(np.int64)
    known = int(codes.max(initial=-1)) + 1
    alone = np.flatnonzero(codes < 0)
    codes[alone] = known + np.arange(alone.size)
    order, groups = relink.group(codes, known + alone.size)
    return order, groups


def settle(
    seen: Seen,
    grouped: tuple[IntArray, IntArray],
    window: tuple[Codes, FloatArray, FloatArray],
    barred: bool,
    spread: float,
    rounds: int,
    best: int = 1,
) -> tuple[Codes, FloatArray]:
    """Settle groups of places from their windows: give each place's likeliest labels and how likely."""
    size, width = seen.label.size, window[1].size + window[2].size - 1
    who, belief = np.full((size, best), -1, np.int32), np.zeros((size, best), np.float32)
    largest = int(min(TOGETHER, np.diff(grouped[1]).max(initial=1)))
    repeat_em.settle_windows(
        repeat_em.desk(seen.people, largest, width),
        *grouped,
        seen.label,
        seen.category,
        seen.starts,
        window_votes.shares(seen.label, seen.category, seen.people, STEADY),
        *window,
        barred,
        max(window[1].size, window[2].size) - 1,
        np.float32(spread),
        rounds,
        who,
        belief,
    )
    return who, belief

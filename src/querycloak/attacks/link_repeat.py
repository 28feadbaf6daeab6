"""`link-repeat`: who is near every time a string is asked has probably asked it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.attacks.base import Attack, AttackerView, Attribution
from querycloak.attacks.link_window import WindowSettings, reach_of
from querycloak.attacks.release_order import (
    Codes,
    ReleaseStream,
    author_em,
    cohort_recovery,
    read_stream,
    windows,
)
from querycloak.kernels.order import group
from querycloak.log import IntArray
from querycloak.settings import setting

#: Records of a group that are settled together, and how many records more each person is taken to have:
#: somebody busy only now is near more records now than the whole log would say. From made-up logs.
TOGETHER, STEADY = 4_096, 10.0
#: Strings asked so often or less tell which labels belong to one cohort.
RARE = 12

FloatArray = npt.NDArray[np.float32]
#: Places in groups, and where each group begins.
Grouped = tuple[IntArray, IntArray]
#: The centre of each place's window, and the weights before and after it.
Window = tuple[Codes, FloatArray, FloatArray]


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

        rounds: int = setting(6, at_least=1, at_most=100, help="rounds of expectation–maximisation")
        spread: float = setting(
            1.0, at_least=0.0, help="how readily a repeated string has another author each time"
        )

    def guess(self, view: AttackerView) -> Attribution:
        """Guess an author for each row that has a label."""
        chosen: Any = self.settings
        k, level = view.assumed_k(chosen.k), view.assumed_level(chosen.level)
        seen = read_stream(view.release, level)
        grouped = by_string(seen)
        details = {
            "attacker_k": k,
            "attacker_level": level,
            "repeated_strings": int(np.count_nonzero(np.diff(grouped[1]) > 1)),
        }
        if not view.never_author:
            sets = cohorts(seen, grouped, k)
            details["cohorts_told_apart"] = int(np.count_nonzero(np.bincount(sets) == k))
            return Attribution(seen.spell(commonest(seen, grouped, sets)), details)
        around = window(seen, k, reach_of(chosen.reach, k))
        who, _ = run_em(seen, grouped, around, chosen.spread, chosen.rounds)
        return Attribution(seen.spell(who[:, 0]), details)


def by_string(seen: ReleaseStream) -> Grouped:
    """Group places by string, in stream order within; places without a string stay alone."""
    codes = seen.string.astype(np.int64)
    known = int(codes.max(initial=-1)) + 1
    alone = np.flatnonzero(codes < 0)
    codes[alone] = known + np.arange(alone.size)
    order, groups = group(codes, known + alone.size)
    return order, groups


def window(seen: ReleaseStream, k: int, reach: int) -> Window:
    """Return the window of `link-window`: around each place, exp(-distance / k)."""
    fall = windows.falling(k, reach)
    return np.arange(seen.label.size, dtype=np.int32), fall, fall


def run_em(
    seen: ReleaseStream, grouped: Grouped, around: Window, spread: float, rounds: int, best: int = 1
) -> tuple[Codes, FloatArray]:
    """Settle groups of places from their windows: give each place's likeliest labels and how likely."""
    size, width = seen.label.size, around[1].size + around[2].size - 1
    who, belief = np.full((size, best), -1, np.int32), np.zeros((size, best), np.float32)
    share = windows.shares(seen.label, seen.category, seen.people, STEADY)
    stream = seen.label, seen.category, seen.starts, share, *around, True, width // 2
    largest = int(min(TOGETHER, np.diff(grouped[1]).max(initial=1)))

    def work(groups: IntArray) -> None:
        room = author_em.workspace(seen.people, largest, width)
        author_em.settle_windows(room, grouped[0], groups, *stream, np.float32(spread), rounds, who, belief)

    in_parts(work, grouped[1])
    return who, belief


def in_parts(work: Callable[[IntArray], None], groups: IntArray) -> None:
    """Share groups out to the machine's cores; they do not touch each other, so the split changes nothing."""
    parts = min(os.cpu_count() or 1, 4, max(1, int(groups[-1]) // 100_000))
    cuts = np.searchsorted(groups, np.linspace(0, int(groups[-1]), parts + 1)).clip(0, groups.size - 1)
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(lambda ends: work(groups[ends[0] : ends[1] + 1]), itertools.pairwise(cuts)))


def cohorts(seen: ReleaseStream, grouped: Grouped, k: int) -> IntArray:
    """Guess which labels share a cohort, from labels that meet on rare strings."""
    return cohort_recovery.mates(*grouped, seen.label, seen.people, k, RARE)


def commonest(seen: ReleaseStream, grouped: Grouped, sets: IntArray) -> IntArray:
    """Guess for each place the label seen most often on its string among those of its cohort."""
    best: IntArray = cohort_recovery.most_seen(*grouped, seen.label, sets)
    return best

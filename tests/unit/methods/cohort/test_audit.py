"""The tests of chance in `cohort`'s audit: their false-alarm rate, enumerated, and what they still find."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from querycloak.methods.cohort.audit import FALSE_ALARM, unlikely_hits, unlikely_pairs

#: Members and searches of small parts on which a normal quantile alarmed up to 5.8e-4 of the time.
SMALL = [(50, 6), (100, 3), (1000, 35), (10, 40), (2, 30), (5, 200)]


@pytest.mark.parametrize(("members", "searches"), SMALL)
def test_own_labels_alarm_as_seldom_as_stated(members, searches):
    own = Fraction(1, members)
    chance = sum(
        math.comb(searches, hits) * own**hits * (1 - own) ** (searches - hits)
        for hits in range(searches + 1)
        if unlikely_hits(hits, [(1 / members, searches)])
    )
    assert chance <= Fraction(FALSE_ALARM) / 3


def partitions(n: int, most: int | None = None):
    """List the ways to write n as a sum, without order."""
    if n == 0:
        yield ()
    for first in range(min(n, n if most is None else most), 0, -1):
        yield from ((first, *rest) for rest in partitions(n - first, first))


def chance_of(shape: tuple[int, ...], members: int) -> Fraction:
    """Compute how likely labels are drawn so often each, whichever labels they are."""
    n, used = sum(shape), len(shape)
    if used > members:
        return Fraction(0)
    ways = math.perm(members, used) * math.factorial(n)
    for often, count in Counter(shape).items():
        ways //= math.factorial(often) ** count
        ways //= math.factorial(count)
    return Fraction(ways, members**n)


@pytest.mark.parametrize(("members", "searches"), [(50, 6), (100, 3), (1000, 25), (10, 25), (2, 30)])
def test_equal_labels_alarm_as_seldom_as_stated(members, searches):
    blocks = pl.DataFrame({"n": [searches], "members": [members]})
    total, alarm = Fraction(0), Fraction(0)
    for shape in partitions(searches):
        chance = chance_of(shape, members)
        total += chance
        if unlikely_pairs(sum(often * (often - 1) // 2 for often in shape), blocks):
            alarm += chance
    assert total == 1
    assert alarm <= Fraction(FALSE_ALARM) / 3


def test_cohorts_of_several_sizes_are_counted_together():
    chances = [(1 / 3, 4), (1 / 5, 3)]
    alarm = 0.0
    for a in range(5):
        for b in range(4):
            chance = math.comb(4, a) * (1 / 3) ** a * (2 / 3) ** (4 - a)
            chance *= math.comb(3, b) * (1 / 5) ** b * (4 / 5) ** (3 - b)
            alarm += chance * unlikely_hits(a + b, chances)
    assert alarm <= FALSE_ALARM / 3
    assert unlikely_hits(60, [(1 / 3, 40), (1 / 5, 30)])


def test_labels_that_favour_somebody_are_found():
    """Ten members: own labels twice as often, half of the labels only, and texts that keep their label."""
    assert unlikely_hits(60, [(0.1, 300)])
    assert not unlikely_hits(40, [(0.1, 300)])
    rng = np.random.default_rng(1)
    half = np.bincount(rng.integers(0, 5, 300))
    fair = np.bincount(rng.integers(0, 10, 300))
    blocks = pl.DataFrame({"n": [300], "members": [10]})
    assert unlikely_pairs(int((half * (half - 1) // 2).sum()), blocks)
    assert not unlikely_pairs(int((fair * (fair - 1) // 2).sum()), blocks)
    assert unlikely_pairs(40, pl.DataFrame({"n": [2] * 100, "members": [10] * 100}))


def test_large_parts_are_tested_too():
    assert unlikely_hits(101_700, [(0.1, 1_000_000)])
    assert not unlikely_hits(101_000, [(0.1, 1_000_000)])

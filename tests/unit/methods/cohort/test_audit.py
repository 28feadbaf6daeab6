"""The tests of chance in `cohort`'s audit: their false-alarm rate, enumerated, and what they still find."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import querycloak as qc
from querycloak.errors import BrokenPromise
from querycloak.methods.cohort import Cohort
from querycloak.methods.cohort.audit import _UNUSUAL as UNUSUAL
from querycloak.methods.cohort.audit import (
    FALSE_ALARM,
    unlikely_hits,
    unlikely_many,
    unlikely_pairs,
    unlikely_users,
)

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


@pytest.mark.parametrize("searches", [300, 1_000, 5_000])
def test_equal_labels_of_two_members_alarm_as_seldom_as_stated(searches):
    """Pairs of two members vary as a chi-square: a normal quantile alarmed 4e-3 of the time."""
    blocks = pl.DataFrame({"n": [searches], "members": [2]})
    alarm = sum(
        math.comb(searches, own)
        for own in range(searches + 1)
        if unlikely_pairs(math.comb(own, 2) + math.comb(searches - own, 2), blocks)
    )
    assert 0 < Fraction(alarm, 2**searches) <= Fraction(FALSE_ALARM) / 3


@pytest.mark.parametrize(("members", "searches", "cohorts"), [(5, 1_000, 1), (3, 2_000, 4), (20, 2_000, 50)])
def test_equal_labels_of_large_cohorts_alarm_seldom(members, searches, cohorts):
    """Ten thousand fair draws with a fixed seed: an alarm has a chance of 0.3 % at the stated rate."""
    rng = np.random.default_rng(5)
    blocks = pl.DataFrame({"n": [searches] * cohorts, "members": [members] * cohorts})
    drawn = rng.multinomial(searches, [1 / members] * members, (10_000, cohorts))
    pairs = (drawn * (drawn - 1) // 2).sum(axis=(1, 2))
    assert not any(unlikely_pairs(int(one), blocks) for one in (pairs.min(), pairs.max()))
    half = rng.multinomial(searches, [1 / (members // 2)] * (members // 2), cohorts)
    assert unlikely_pairs(int((half * (half - 1) // 2).sum()), blocks)


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
    assert unlikely_hits(63, [(0.1, 300)])
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
    blocks = pl.DataFrame({"n": [2_000] * 50, "members": [20] * 50})
    mean, deviation = 50 * 1_999_000 / 20, math.sqrt(50 * 1_999_000 / 20 * 0.95)
    assert unlikely_pairs(int(mean - 6.5 * deviation), blocks), "labels dealt more evenly than by chance"
    assert not unlikely_pairs(int(mean - 4.5 * deviation), blocks)


def tail(n: int, hits: range, members: int) -> Fraction:
    own = Fraction(1, members)
    return sum((math.comb(n, h) * own**h * (1 - own) ** (n - h) for h in hits), Fraction(0))


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(
    ("members", "searches", "tests"), [(2, 60, 10), (10, 300, 200_000), (50, 9, 5), (3, 40, 1)]
)
def test_labels_of_a_user_alarm_as_seldom_as_stated(members, searches, tests, few):
    """Enumerated: exactly those numbers of hits are unlikely whose tail is below the stated one."""
    counts = pl.DataFrame({"author": np.arange(searches + 1), "hits": np.arange(searches + 1)})
    counts = counts.with_columns(n=pl.lit(searches), members=pl.lit(members))
    found = set(unlikely_users(counts, tests, few=few).tolist())
    limit = Fraction(FALSE_ALARM) / 22 / tests
    for hits in range(searches + 1):
        sides = range(hits + 1) if few else range(hits, searches + 1)
        assert (hits in found) == (tail(searches, sides, members) < limit)


@pytest.mark.parametrize("few", [False, True])
def test_many_unusual_users_alarm_as_seldom_as_stated(few):
    """Two thousand users, each with 40 searches: how many of them are unusual is a binomial number."""
    members, searches, users = 4, 40, 2_000
    every = pl.DataFrame({"hits": np.arange(searches + 1)}).with_columns(
        author=pl.col("hits"), n=pl.lit(searches), members=pl.lit(members)
    )
    sides = {h: range(h + 1) if few else range(h, searches + 1) for h in range(searches + 1)}
    unusual = {h for h in sides if tail(searches, sides[h], members) < Fraction(UNUSUAL)}
    one = sum(tail(searches, range(h, h + 1), members) for h in unusual)

    def alarm(count):
        shown = every.filter(pl.col("hits") == (min if few else max)(unusual))
        shown = pl.concat([shown] * count).with_columns(author=pl.arange(0, count))
        return unlikely_many(shown, users, users, few=few).size == count

    least = next(count for count in range(1, 100) if alarm(count))
    assert not any(alarm(count) for count in range(1, least))
    chance = sum(math.comb(users, c) * one**c * (1 - one) ** (users - c) for c in range(least, least + 60))
    assert chance <= Fraction(FALSE_ALARM) / 22


def rounds(users=20_000, searches=15):
    """Return a log in which every user has one search a day."""
    names = pl.DataFrame({"user": [f"u{n}" for n in range(users)]})
    days = [datetime(2026, 3, day) for day in range(1, searches + 1)]
    return pl.concat([names.with_columns(query=pl.lit(f"made up {d.day}"), time=pl.lit(d)) for d in days])


@pytest.fixture(scope="module")
def twenty_thousand():
    return rounds()


def protect(log):
    return qc.protect(log, "cohort", k=10, shards=1, seed=1)


def give_labels(monkeypatch, users, label=lambda freed: freed.user):
    """Plant a fault: searches of the first users carry labels that are not drawn."""
    draw = Cohort._labelled

    def faulty(self, freed):
        drawn = draw(self, freed)
        planted = self._labels.of(label(freed))
        return drawn.replace(user=np.where(freed.user < users, planted, drawn.user))

    monkeypatch.setattr(Cohort, "_labelled", faulty)


def test_fifty_users_under_their_own_labels_among_twenty_thousand_are_found(monkeypatch, twenty_thousand):
    give_labels(monkeypatch, 50)
    with pytest.raises(BrokenPromise, match="50 users have too many searches under one label"):
        protect(twenty_thousand)


def test_the_certificate_states_from_how_many_searches_on_a_user_is_found(monkeypatch, twenty_thousand):
    release = protect(twenty_thousand)
    (check,) = (c for c in release.certificate["methods"][0]["checks"] if "single user" in c["detail"])
    assert check["verdict"] == "kept"
    least = int(check["detail"].split(" from ")[1].split()[0])
    assert 0.1**least * 200_000 < FALSE_ALARM / 22 <= 0.1 ** (least - 1) * 200_000
    give_labels(monkeypatch, 1)
    few = twenty_thousand.filter((pl.col("user") != "u0") | (pl.col("time").dt.day() <= least - 1))
    assert len(protect(few).log) == few.height
    with pytest.raises(BrokenPromise, match="1 users have too many searches under one label"):
        protect(twenty_thousand)


def test_users_whose_label_stays_for_a_while_are_found(monkeypatch, twenty_thousand):
    """Two labels for a week each: neither is too frequent, but a search has the label of the one before."""

    def weekly(freed):
        week = (freed.time // 86_400_000_000 - 20_513) // 7  # 1 March 2026 is day 20,513
        return freed.user // 10 * 10 + (freed.user + np.minimum(week, 1)) % 10

    give_labels(monkeypatch, 50, weekly)
    with pytest.raises(BrokenPromise, match=r"50 users have too many searches with the label of the one"):
        protect(twenty_thousand)

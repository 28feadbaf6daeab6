"""The privacy numbers of paper 004, worked by hand and counted pair by pair."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks import scoring_covers


def ints(*values):
    return np.array(values, np.int64)


def flags(text):
    """R is a real search, F a fake."""
    return np.array([letter == "R" for letter in text])


labelled = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=15)


def test_a_perfect_cut_leaves_no_structure():
    assert scoring_covers.structure(ints(0, 0, 1, 1), flags("RRFF")) == (0.0, 0.0)


def test_structure_by_hand():
    """Four real, in clusters 0, 0, 0, 1: three of six pairs torn. Two fakes, in 0 and 1: 3 + 1 of 8."""
    torn, mixed = scoring_covers.structure(ints(0, 0, 0, 1, 0, 1), flags("RRRRFF"))
    assert (torn, mixed) == (3 / 6, 4 / 8)


def test_one_cluster_tears_nothing_and_mixes_everything():
    assert scoring_covers.structure(ints(0, 0, 0), flags("RRF")) == (0.0, 1.0)


@pytest.mark.parametrize(("text", "undefined"), [("RRR", (False, True)), ("RFF", (True, False))])
def test_no_pairs_define_no_error(text, undefined):
    found = scoring_covers.structure(ints(0, 1, 1), flags(text))
    assert tuple(math.isnan(value) for value in found) == undefined


@given(labelled)
def test_structure_is_a_count_of_pairs(events):
    cluster, real = ints(*(c for c, _, _ in events)), np.array([r for _, _, r in events])
    torn, mixed = scoring_covers.structure(cluster, real)
    hers = list(combinations(np.flatnonzero(real), 2))
    cross = [(a, b) for a in np.flatnonzero(real) for b in np.flatnonzero(~real)]
    if hers:
        assert torn == pytest.approx(sum(cluster[a] != cluster[b] for a, b in hers) / len(hers))
    if cross:
        assert mixed == pytest.approx(sum(cluster[a] == cluster[b] for a, b in cross) / len(cross))


def test_any_clusters_are_at_chance_when_the_labels_are_drawn():
    """All 20 ways to call three of six events real: the errors add up to one, on average, exactly."""
    cluster = ints(0, 0, 0, 0, 1, 1)
    found = []
    for chosen in combinations(range(6), 3):
        real = np.zeros(6, bool)
        real[list(chosen)] = True
        found.append(sum(scoring_covers.structure(cluster, real)))
    assert np.mean(found) == pytest.approx(1.0)


def test_relative_by_hand():
    """Before ab|cd, after abc|d: cd is torn (1 of 2), ac and bc are new (2 of 4)."""
    assert scoring_covers.relative(ints(0, 0, 1, 1), ints(0, 0, 0, 1)) == (1 / 2, 2 / 4)


@given(labelled)
def test_relative_is_a_count_of_pairs(events):
    before, after = ints(*(a for a, _, _ in events)), ints(*(b for _, b, _ in events))
    pairs = [(before[a] == before[b], after[a] == after[b]) for a, b in combinations(range(len(before)), 2)]
    together, apart = [now for was, now in pairs if was], [now for was, now in pairs if not was]
    torn, new = scoring_covers.relative(before, after)
    assert torn == pytest.approx(1 - np.mean(together)) if together else math.isnan(torn)
    assert new == pytest.approx(np.mean(apart)) if apart else math.isnan(new)


def test_profiles_by_hand():
    """She asks about 0 and 1 alike; one cluster has one of these and one of topic 2, the other the rest."""
    weights = np.eye(3)[[0, 1, 2]]
    found = scoring_covers.profiles(weights, ints(0, 1, 0), flags("RRF"))
    assert found == pytest.approx([1 - 1 / 2, 1 - 1 / math.sqrt(2)])


def test_profiles_of_nothing():
    assert scoring_covers.profiles(np.zeros((2, 3)), ints(0, 1), flags("RF")) == []
    assert scoring_covers.profiles(np.array([[1.0], [0.0]]), ints(0, 1), flags("RF")) == [0.0, 1.0]


def test_a_spread_by_hand():
    """Mean 0.5, deviation 0.1, t of 2 degrees 4.303: reach 4.303 · 0.1 / √3."""
    found = scoring_covers.spread([0.6, math.nan, 0.4, 0.5])
    assert (found["n"], found["median"], found["values"]) == (3, 0.5, [0.4, 0.5, 0.6])
    assert (found["mean"], found["low"]) == pytest.approx((0.5, 0.5 - 4.302652730 * 0.1 / math.sqrt(3)))
    assert found["high"] == pytest.approx(1.0 - found["low"])


def test_few_people_say_little():
    assert (scoring_covers.spread([0.3])["low"], scoring_covers.spread([0.3])["high"]) == (0.0, 1.0)
    assert scoring_covers.spread([math.nan])["mean"] is None
    alike = scoring_covers.spread([1.0] * 20)
    assert alike["high"] == 1.0
    assert 0.8 < alike["low"] < 0.9

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak import measures
from querycloak.errors import NotApplicable
from querycloak.measures.base import LogPair
from querycloak.measures.counts import (
    JensenShannon,
    ReleaseRate,
    Retention,
    TopPreserved,
    TreeEmd,
    largest_tree_emd,
)
from tests.reference.plain_measures import terms

weights = st.lists(st.floats(0.001, 100), min_size=1, max_size=8)


def test_jensen_shannon_by_hand():
    assert measures.jensen_shannon([1, 1], [2, 2]) == 0.0
    assert measures.jensen_shannon([1, 0], [0, 5]) == 1.0
    # p = (1/2, 1/2), q = (1, 0), m = (3/4, 1/4)
    by_hand = 0.5 * (0.5 * math.log2(0.5 / 0.75) + 0.5 * math.log2(0.5 / 0.25)) + 0.5 * math.log2(1 / 0.75)
    assert measures.jensen_shannon([1, 1], [1, 0]) == pytest.approx(by_hand)


@given(
    pair=weights.flatmap(
        lambda p: st.tuples(st.just(p), st.lists(st.floats(0.001, 100), min_size=len(p), max_size=len(p)))
    )
)
def test_jensen_shannon_agrees_with_scipy(pair):
    from scipy.spatial.distance import jensenshannon

    p, q = pair
    with np.errstate(invalid="ignore"):  # scipy takes the root of -1e-17 where both are the same
        theirs = np.nan_to_num(jensenshannon(p, q, base=2)) ** 2
    assert measures.jensen_shannon(p, q) == pytest.approx(theirs, abs=1e-9)
    assert measures.jensen_shannon(p, q) == pytest.approx(measures.jensen_shannon(q, p))


@pytest.mark.parametrize(
    ("p", "q"), [([1], [1, 2]), ([0, 0], [1, 1]), ([-1, 2], [1, 1]), ([math.nan, 1], [1, 1])]
)
def test_jensen_shannon_refuses_what_is_no_distribution(p, q):
    with pytest.raises(ValueError):
        measures.jensen_shannon(p, q)


def test_tree_emd_by_hand():
    assert measures.tree_emd({"A/B": 1}, {"A/C": 3}) == pytest.approx(2)
    assert measures.tree_emd({"A/B": 1}, {"A": 3}) == pytest.approx(1)
    assert measures.tree_emd({"A": 1}, {"B": 1}) == pytest.approx(2)
    assert measures.tree_emd({"A/B/C": 1, "D": 1}, {"A/B/C": 1}) == pytest.approx(0.5 * (3 + 1))


paths = st.sampled_from(["A", "A/B", "A/B/C", "A/D", "E", "E/F/G"])
profiles = st.dictionaries(paths, st.integers(1, 5), min_size=1)


@given(a=profiles, b=profiles)
def test_tree_emd_is_the_least_cost_of_moving(a, b):
    """Compare with the transport problem solved as a linear programme."""
    from scipy.optimize import linprog

    def apart(x, y):
        x, y = x.split("/"), y.split("/")
        shared = next((i for i, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), min(len(x), len(y)))
        return len(x) + len(y) - 2 * shared

    rows, columns = list(a), list(b)
    cost = [apart(x, y) for x in rows for y in columns]
    leave = [[float(i == r) for i in range(len(rows)) for _ in columns] for r in range(len(rows))]
    arrive = [[float(j == c) for _ in rows for j in range(len(columns))] for c in range(len(columns))]
    masses = [a[x] / sum(a.values()) for x in rows] + [b[y] / sum(b.values()) for y in columns]
    best = linprog(cost, A_eq=leave + arrive, b_eq=masses, method="highs").fun
    assert measures.tree_emd(a, b) == pytest.approx(best, abs=1e-7)
    assert measures.tree_emd(a, b) <= largest_tree_emd([*a, *b]) + 1e-9


def test_top_preserved():
    assert measures.top_preserved("aaabbc", "aaacc", n=2) == 0.5
    assert measures.top_preserved("aaabbc", "cba", n=2) == 1.0  # all tie at the edge
    assert measures.top_preserved("ab", "", n=2) == 0.0
    assert math.isnan(measures.top_preserved("", "a"))
    with pytest.raises(ValueError):
        measures.top_preserved("a", "a", n=0)


def test_release_rate():
    assert measures.release_rate([1, 2, 3, 4], [1]) == 0.25
    assert math.isnan(measures.release_rate([], []))


def test_terms_split_at_everything_but_letters_and_digits():
    assert terms("It's NEW_york-2006, naïve!") == ["it", "s", "new", "york", "2006", "naïve"]


def test_retention_by_hand():
    original = {"u": ["red shoes", "shoes"], "v": ["blue hat"]}
    released = {"u": ["shoes", "shoes"], "v": []}
    ads = {
        "shoes": {"bid": 2.0, "impressions": 10.0, "clicks": 1.0},
        "hat": {"bid": 4.0, "impressions": 0.0, "clicks": None},
    }
    found = measures.retention(original, released, ads)
    assert found["distinct_terms"] == pytest.approx(25)
    assert found["log_size"] == pytest.approx(100 * 2 / 5)
    assert found["users"] == 50
    assert found["bid"] == pytest.approx(100 * 4 / 8)
    assert found["clicks"] == found["impressions"] == found["revenue"] == 100
    assert measures.retention(list(original.values()), list(released.values())) == {
        name: found[name] for name in ("distinct_terms", "log_size", "users")
    }


def _pair(**changes):
    original = pl.DataFrame(
        {
            "user": ["u", "u", "v"],
            "query": ["red shoes", "shoes", "hat"],
            "category": ["Shopping/Shoes", "Shopping/Shoes", "Home"],
        }
    )
    return LogPair(original, original.head(2).with_columns(**changes))


def test_measures_on_logs_agree_with_the_plain_functions():
    pair = _pair()
    assert ReleaseRate()(pair) == pytest.approx(2 / 3)
    assert TreeEmd()(pair)["distance"] == pytest.approx(
        measures.tree_emd({"Shopping/Shoes": 2, "Home": 1}, {"Shopping/Shoes": 2})
    )
    assert JensenShannon()(pair)["topics"] == pytest.approx(measures.jensen_shannon([2, 1], [2, 0]))
    assert TopPreserved()(pair)["queries_10"] == pytest.approx(2 / 3)
    plain = measures.retention({"u": ["red shoes", "shoes"], "v": ["hat"]}, {"u": ["red shoes", "shoes"]})
    assert Retention()(pair) == pytest.approx(plain)


def test_a_measure_that_does_not_apply_says_why():
    empty = pl.lit(None, pl.String)
    with pytest.raises(NotApplicable, match="the release has no category"):
        TreeEmd()(_pair(category=empty))
    assert math.isnan(Retention()(_pair(user=empty))["users"])
    assert set(JensenShannon()(_pair(category=empty))) == {"queries"}


@given(counts=st.dictionaries(paths, st.integers(1, 9), min_size=1))
def test_nothing_moves_when_nothing_changed(counts):
    assert measures.tree_emd(counts, counts) == 0
    assert measures.top_preserved(Counter(counts).elements(), Counter(counts).elements()) == 1


def test_retention_counts_users_and_not_their_labels():
    original = pl.DataFrame({"row": range(4), "user": ["u", "u", "v", "w"], "query": ["a", "b", "c", "d"]})
    parts = pl.DataFrame({"row": range(3), "user": ["p1", "p2", "p3"], "query": ["a", "b", "c"]})
    truth = pl.DataFrame(
        {"released_row": range(3), "original_row": range(3), "original_user": ["u", "u", "v"]}
    )
    assert Retention()(LogPair(original, parts, truth))["users"] == pytest.approx(200 / 3)
    assert math.isnan(Retention()(LogPair(original, parts))["users"])  # whose parts these are is not known
    kept = parts.with_columns(user=pl.Series(["u", "u", "v"]))
    assert Retention()(LogPair(original, kept))["users"] == pytest.approx(200 / 3)
    nameless = kept.with_columns(user=pl.lit(None, pl.String))
    assert Retention()(LogPair(original, nameless, truth))["users"] == pytest.approx(200 / 3)

"""The syntactic distance of paper 003 is the one written down there, however it is found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels import edit_distance
from querycloak.methods.microaggregation.text_distance import (
    Histories,
    SummaryVectors,
    encode_strings,
    name_hosts,
    normalise,
    user_distances,
)
from querycloak.methods.microaggregation.tree_distance import UNIT
from tests.reference import naive_microagg as naive
from tests.reference.naive_microagg import Search

LONG = ["abcdefgh" * 5, "hgfedcba" * 7, "abc" * 30, "é" * 33]
words = st.text("abcé", min_size=1, max_size=6) | st.sampled_from(LONG)
queries = st.lists(words, max_size=4).map(" ".join)
hosts = st.none() | st.lists(st.sampled_from(["a", "B", "c"]), min_size=1, max_size=4).map(".".join)
searches = st.builds(Search, queries, st.none() | st.integers(0, 9), st.none() | st.integers(1, 5), hosts)
repeated = st.builds(
    Search,
    st.sampled_from(["a", "b", "ab c"]),
    st.integers(0, 99),
    st.sampled_from([None, 1, 9]),
    st.just("a"),
)
logs = st.lists(st.lists(searches, min_size=1, max_size=5), min_size=1, max_size=6)
repeats = st.lists(st.lists(repeated, min_size=3, max_size=9), min_size=3, max_size=5)


def arrays(users):
    """Turn lists of searches into what the fast distance takes."""
    flat = [search for user in users for search in user]
    strings = sorted({search.query for search in flat})
    urls = sorted({search.host for search in flat if search.host is not None})
    numbers, names = name_hosts([f"http://{url}/x" for url in urls])
    found = [-1 if s.host is None else numbers[urls.index(s.host)] for s in flat]
    histories = Histories(
        np.cumsum([0, *map(len, users)]),
        _column([search.time for search in flat]),
        _column([search.rank for search in flat]),
        np.array(found, np.int64),
        np.array([strings.index(search.query) for search in flat], np.int64),
    )
    return histories, encode_strings(strings), names


def _column(values):
    known = np.array([value is not None for value in values])
    return normalise(np.array([value or 0 for value in values]), known)


@given(logs | repeats, st.booleans(), st.sampled_from([1, 2]), st.sampled_from([1, 1 << 30]))
def test_the_fast_distances_are_the_naive_ones(users, printed, threads, room):
    """Also when the tables of words fit no more than one person at a time."""
    log = naive.Log(users, printed)
    expected = [[log.d_user(a, b) for b in range(len(users))] for a in range(len(users))]
    fast = user_distances(*arrays(users), "printed" if printed else "text", threads, room)
    np.testing.assert_allclose(fast, expected, rtol=0, atol=1e-12)


@given(st.lists(words, min_size=1, max_size=90, unique=True))
def test_edits_of_words_are_those_of_the_table(some):
    strings = encode_strings(some)
    laid = edit_distance.lay_out(strings.letters, strings.bounds)
    known = edit_distance.fractions(laid.lengths)
    chosen = np.argsort(laid.lengths, kind="stable")
    out = np.empty((chosen.size, chosen.size), known.code.dtype)
    edit_distance.normalised(laid, known, chosen, out)
    spelled = dict(zip(laid.number.tolist(), some, strict=True))
    for row, w in zip(out, chosen.tolist(), strict=True):
        expected = [naive.levenshtein(spelled[w], spelled[v]) for v in range(len(some))]
        longest = [max(len(spelled[w]), len(spelled[v])) for v in range(len(some))]
        np.testing.assert_array_equal(known.value[row], np.array(expected) / longest)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("www.a.com", "www.b.com", 2 / 7),
        ("www.a.com", "WWW.A.com", 0),
        ("a.com", "b.a.com", 1 / 7),
        ("a.com", "a.net", 2 / 3),
        ("x.y.z", "a.b.c", 1),
    ],
)
def test_domain_names_differ_most_on_the_right(a, b, expected):
    """The first is the acceptance example of issue 6: 0.2857."""
    assert naive.d_u(a, b) == pytest.approx(expected)
    one_each = [[Search("q", host=a)], [Search("q", host=b)]]
    assert user_distances(*arrays(one_each))[0, 1] == pytest.approx(expected / 12)


def test_the_double_weight_is_on_the_words():
    users = [[Search("aaaa bbbb")], [Search("aaaa")], [Search("aaaa cc dd")]]
    text, printed = (user_distances(*arrays(users), weights)[0, 1] for weights in ("text", "printed"))
    assert text == pytest.approx((0.5 + 2 * 1) / 12)
    assert printed == pytest.approx((2 * 0.5 + 1) / 12)


def test_users_of_equal_searches_differ_by_their_number():
    users = [[Search("a")], [Search("a")] * 3, [Search("a")] * 2]
    np.testing.assert_allclose(
        user_distances(*arrays(users)), [[0, 0.5, 0.25], [0.5, 0, 0.25], [0.25, 0.25, 0]]
    )


def test_normal_values_run_from_0_to_1_and_the_unknown_stay_out():
    values = np.array([30, 10, 20, 99])
    assert normalise(values, values < 99).tolist() == [1.0, 0.0, 0.5, -1.0]
    assert normalise(np.array([7, 7])).tolist() == [0.0, 0.0]


# Summary vectors


VECTORS = np.random.default_rng(5).normal(size=(60, 7))


def test_lines_equal_the_norm_of_the_difference():
    everybody = np.arange(len(VECTORS))
    gaps = np.linalg.norm(VECTORS[:, None] - VECTORS[None], axis=2)
    longest = 2 * np.abs(VECTORS).max() * np.sqrt(VECTORS.shape[1])
    found = SummaryVectors(VECTORS).rows(everybody, everybody)
    np.testing.assert_allclose(found / UNIT, gaps / longest, atol=5e-6)


def test_the_order_of_vectors_makes_no_difference():
    everybody, order = np.arange(len(VECTORS)), np.random.default_rng(6).permutation(len(VECTORS))
    whole = SummaryVectors(VECTORS).rows(everybody, everybody)
    np.testing.assert_array_equal(
        SummaryVectors(VECTORS).rows(order[:9], order), whole[np.ix_(order[:9], order)]
    )
    mixed = SummaryVectors(VECTORS[order]).rows(everybody, everybody)
    np.testing.assert_array_equal(mixed, whole[np.ix_(order, order)])


def test_vectors_of_nothing_are_not_apart():
    assert SummaryVectors(np.zeros((2, 3))).rows(np.array([0]), np.array([0, 1])).tolist() == [[0, 0]]

"""Pair scores of many functions, put together, and the cuts that come of them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks.link_learned import pair_scores


def relate(first, second):
    """One relation that names the pair."""
    return (first * 100 + second).astype(np.float32)[:, None]


def sure(value):
    return lambda relations: np.full(len(relations), value, np.float32)


def named(relations):
    return relations[:, 0] / np.float32(10_000)


@given(st.integers(0, 40), st.integers(1, 50))
def test_pairs_come_in_their_order_whatever_the_chunks(size, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_scores, "CHUNK", chunk)
        found = pair_scores.scores(relate, size, [named], "median")
    np.testing.assert_allclose(
        found, [(a * 100 + b) / 1e4 for a, b in combinations(range(size), 2)], rtol=1e-6
    )


@given(st.sets(st.integers(0, 19)))
def test_pairs_that_were_scored_before_are_not_scored_again(chosen):
    """As over draws: her own searches stay, and only pairs with a fake are new."""
    own, asked = np.array(sorted(chosen), np.int64), []

    def noting(first, second):
        asked.extend(zip(first.tolist(), second.tolist(), strict=True))
        return relate(first, second)

    whole = pair_scores.scores(relate, 20, [named], "median")
    again = pair_scores.scores(noting, 20, [named], "median", (own, pair_scores.among(whole, 20, own)))
    np.testing.assert_array_equal(again, whole)
    assert sorted(asked) == [pair for pair in combinations(range(20), 2) if not chosen.issuperset(pair)]


def test_the_median_forgets_an_outlier_and_the_mean_does_not():
    functions = [sure(0.2), sure(0.3), sure(1.0)]
    assert pair_scores.scores(relate, 2, functions, "median") == pytest.approx([0.3])
    assert pair_scores.scores(relate, 2, functions, "mean") == pytest.approx([0.5])


def grouped(labels):
    """A function that links events of equal labels."""
    return lambda relations: (
        labels[(relations[:, 0] // 100).astype(int)] == labels[(relations[:, 0] % 100).astype(int)]
    ).astype(np.float32)


@pytest.mark.parametrize("most", [1, 30, 10**6])
def test_the_majority_of_cuts_decides(most, monkeypatch):
    monkeypatch.setattr(pair_scores, "MOST_SCORES", most)
    one, other = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 0, 1])
    found = pair_scores.majority(relate, 6, [grouped(one), grouped(one), grouped(other)], parts=2, seed=0)
    expected = [(2 * (one[a] == one[b]) + (other[a] == other[b])) / 3 for a, b in combinations(range(6), 2)]
    assert found == pytest.approx(expected)
    assert pair_scores.cut(found, 6, 2, 0).tolist() == one.tolist()


def test_the_matrix_is_symmetric_and_links_all_to_themselves():
    found = pair_scores.matrix(np.array([0.1, 0.2, 0.3], np.float32), 3)
    np.testing.assert_allclose(found, [[1, 0.1, 0.2], [0.1, 1, 0.3], [0.2, 0.3, 1]], rtol=1e-6)


@given(st.sets(st.integers(0, 19)))
def test_scores_among_some_are_those_of_the_whole(chosen):
    whole = pair_scores.scores(relate, 20, [named], "mean")
    some = np.array(sorted(chosen), np.int64)
    expected = pair_scores.matrix(whole, 20)[np.ix_(some, some)]
    np.testing.assert_array_equal(pair_scores.matrix(pair_scores.among(whole, 20, some), some.size), expected)

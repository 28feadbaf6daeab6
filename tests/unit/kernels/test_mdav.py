"""MDAV forms the groups of the thesis's algorithm 1, whatever the order of the members."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels import mdav
from tests.reference import naive_mdav


def groups(labels) -> list[set[int]]:
    return [set(np.flatnonzero(labels == number).tolist()) for number in range(labels.max() + 1)]


@st.composite
def matrices(draw, most=22):
    """Symmetric distances of few values, so that there are many ties; and ranks."""
    size = draw(st.integers(1, most))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    upper = np.triu(chance.integers(0, draw(st.sampled_from([2, 4, 1000])), (size, size)), 1)
    return (upper + upper.T).astype(np.int32), chance.permutation(size).astype(np.uint64) << np.uint64(50)


@given(matrices(), st.integers(1, 6))
def test_a_matrix_gives_the_naive_groups(made, k):
    matrix, rank = made
    expected = naive_mdav.mdav(range(len(rank)), k, rank.tolist(), lambda x, y: Fraction(int(matrix[x, y])))
    assert groups(mdav.by_matrix(matrix, k, rank)) == expected


@given(matrices(), st.integers(1, 6), st.integers(1, 4), st.sampled_from([2, 50]))
def test_vectors_give_the_naive_groups(made, k, width, values):
    rank = made[1]
    vectors = np.random.default_rng(len(rank)).integers(-values, values, (len(rank), width), np.int32)
    expected = naive_mdav.mdav_of_vectors(vectors.tolist(), k, rank.tolist())
    assert groups(mdav.by_vectors(vectors, k, rank)) == expected


@given(matrices(most=60), st.integers(1, 7))
def test_all_groups_have_k_members_and_the_last_up_to_twice_as_many(made, k):
    matrix, rank = made
    sizes = np.bincount(mdav.by_matrix(matrix, k, rank))
    assert (sizes[:-1] == k).all()
    assert sizes[-1] == len(rank) if len(rank) < 2 * k else k <= sizes[-1] < 2 * k


@given(matrices(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_order_of_the_members_makes_no_difference(made, k, chance):
    matrix, rank = made
    order = list(range(len(rank)))
    chance.shuffle(order)
    mixed = np.ascontiguousarray(matrix[np.ix_(order, order)])
    np.testing.assert_array_equal(
        mdav.by_matrix(mixed, k, rank[order]), mdav.by_matrix(matrix, k, rank)[order]
    )
    np.testing.assert_array_equal(
        mdav.by_vectors(matrix[order], k, rank[order]), mdav.by_vectors(matrix, k, rank)[order]
    )


def test_two_far_pairs_find_each_other():
    line = np.array([[0], [100], [1], [101]], np.int32)
    assert groups(mdav.by_vectors(line, 2, np.arange(4, dtype=np.uint64))) == [{0, 2}, {1, 3}]


def test_the_lowest_rank_wins_among_equals():
    matrix = (1 - np.eye(6, dtype=np.int32)).astype(np.int32)
    rank = np.array([5, 4, 3, 2, 1, 0], np.uint64)
    # the centroid is member 5, at 0 from itself: the farthest one of lowest rank is member 4
    assert groups(mdav.by_matrix(matrix, 2, rank)) == [{4, 5}, {2, 3}, {0, 1}]


def test_ranks_above_half_of_their_range_are_high():
    assert mdav.places(np.array([2**63, 1, 2**64 - 1], np.uint64)).tolist() == [1, 0, 2]


@pytest.mark.parametrize("size", [1, 4])
def test_fewer_than_k_are_one_group_for_the_caller_to_refuse(size):
    rank = np.arange(size, dtype=np.uint64)
    assert set(mdav.by_matrix(np.zeros((size, size), np.int32), 5, rank)) == {0}
    assert set(mdav.by_vectors(np.zeros((size, 2), np.int32), 5, rank)) == {0}


@given(matrices(), st.integers(1, 5))
def test_medoids_are_the_most_central_members(made, k):
    matrix, rank = made
    labels = mdav.by_matrix(matrix, k, rank)
    medoid, spread = mdav.medoids(matrix, labels, rank)
    for members, middle, total in zip(groups(labels), medoid, spread, strict=True):
        sums = {x: sum(int(matrix[x, y]) for y in members) for x in members}
        assert (total, middle) == (min(sums.values()), min(members, key=lambda x: (sums[x], rank[x])))

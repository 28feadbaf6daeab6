"""Ancestors and the two nodes furthest apart, against sets and loops."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.reference import naive_dp

from querycloak.errors import DataError
from querycloak.text._ancestry import ancestors, inverted, most_apart


def ragged(rows):
    flat = np.array([value for row in rows for value in row], np.int32)
    return flat, np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)


def rows_of(flat, start):
    return [flat[a:b].tolist() for a, b in pairwise(start)]


def made(seed, size, most_parents=3):
    taxonomy = naive_dp.random_taxonomy(random.Random(seed), size, most_parents)
    return taxonomy, ragged([taxonomy[node] for node in range(size)])


SEEDS, SIZES = st.integers(0, 10**6), st.integers(1, 40)


@given(SEEDS, SIZES, st.integers(1, 5))
def test_ancestors_are_those_of_the_sets(seed, size, most_parents):
    taxonomy, parents = made(seed, size, most_parents)
    found = rows_of(*ancestors(*parents))
    assert [set(row) for row in found] == [naive_dp.subsumers(taxonomy, node) for node in range(size)]
    assert all(len(row) == len(set(row)) for row in found), "each once, however many ways lead up"


@given(st.lists(st.lists(st.integers(0, 30), max_size=6), max_size=20))
def test_rows_turned_around_name_the_rows_that_hold_each_number(rows):
    holders = rows_of(*inverted(*ragged(rows), 31))
    assert holders == [[r for r, row in enumerate(rows) for value in row if value == n] for n in range(31)]


def test_several_roots_are_for_the_caller_to_judge():
    found = rows_of(*ancestors(*ragged([[], [0], [], [2, 1]])))
    assert [sorted(row) for row in found] == [[0], [0, 1], [2], [0, 1, 2, 3]]


@pytest.mark.parametrize("rows", [[[0]], [[], [2], [1]], [[], [0, 3], [1], [2]], [[1], [2], [0]]])
def test_a_circle_is_refused(rows):
    with pytest.raises(DataError, match="leads in a circle"):
        ancestors(*ragged(rows))


@given(SEEDS, st.integers(2, 30), st.randoms(use_true_random=False))
def test_one_edge_that_closes_a_circle_is_found_anywhere(seed, size, rng):
    taxonomy, _ = made(seed, size)
    below = rng.choice([node for node in taxonomy if taxonomy[node]])
    above = rng.choice(sorted(naive_dp.subsumers(taxonomy, below)))
    with pytest.raises(DataError, match="leads in a circle"):
        ancestors(*ragged([[*taxonomy[node], *([below] if node == above else [])] for node in range(size)]))


def naive_most_apart(nodes, sets):
    return min(Fraction(len(sets[a] & sets[b]), len(sets[a] | sets[b])) for a in nodes for b in nodes)


@given(SEEDS, SIZES, st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_two_furthest_apart_are_those_of_all_pairs(seed, size, most_parents, rng):
    taxonomy, parents = made(seed, size, most_parents)
    nodes = np.array(rng.sample(range(size), rng.randint(1, size)), np.int64)
    common, union = most_apart(nodes, *ancestors(*parents))
    sets = [naive_dp.subsumers(taxonomy, node) for node in range(size)]
    assert Fraction(common, union) == naive_most_apart(nodes.tolist(), sets)


@given(st.lists(st.sets(st.integers(1, 12), max_size=12), min_size=1, max_size=12))
@example([{1, 3, 5, 6, 7}, {1, 4, 8, 9}, {1, 2}, {3, 4}])  # the smallest two lie furthest apart, by a hair
@example([{1, 3, 5, 6, 7}, {1, 4, 8, 9}, {1, 3}, {1, 2}, {3, 4}])
def test_any_sets_that_share_one_feature_will_do(sets):
    sets = [{0, *rest} for rest in sets]
    features, start = ragged([sorted(row) for row in sets])
    nodes = np.arange(len(sets), dtype=np.int64)
    common, union = most_apart(nodes, features, start.astype(np.int64))
    assert Fraction(common, union) == naive_most_apart(nodes.tolist(), sets)

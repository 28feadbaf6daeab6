"""Grouping by blocks keeps the promise on sizes, depends on no order, and stays close to the exact groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querycloak.kernels import candidates, mdav
from querycloak.kernels.semantic_distance import people
from querycloak.kernels.vector_distance import by_angle, by_line
from tests.unit.kernels.test_semantic_distance import made, random_world


def ranks(size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).permutation(size).astype(np.uint64)


@settings(max_examples=15)
@given(st.integers(1, 300), st.integers(1, 7), st.integers(1, 60), st.integers(0, 9))
def test_all_groups_have_k_members_and_one_up_to_twice_as_many(size, k, most, seed):
    vectors = by_line(np.random.default_rng(seed).integers(0, 4, (size, 3)).astype(float))
    labels = candidates.group(vectors, k, ranks(size), most=most)
    sizes = np.sort(np.bincount(labels))
    assert (sizes[:-1] == k).all()
    assert sizes[-1] == size if size < 2 * k else k <= sizes[-1] < 2 * k


def test_blocks_hold_everybody_once_and_are_small():
    ready = made(*random_world(500, seed=2))
    rank = ranks(500)
    members = np.argsort(rank, kind="stable")
    parts = candidates.blocks(ready, members, 3, 64)
    assert sorted(np.concatenate(parts).tolist()) == list(range(500))
    assert max(map(len, parts)) <= 64
    assert sum(len(part) % 3 != 0 for part in parts) <= 1
    assert all((np.diff(rank[part].astype(int)) > 0).all() for part in parts)  # the next landmarks go by rank


def test_up_to_one_block_is_exact():
    ready, rank = made(*random_world(120, seed=4)), ranks(120)
    exact = mdav.by_matrix(ready.matrix(), 4, rank)
    np.testing.assert_array_equal(candidates.group(ready, 4, rank, most=120), exact)


@pytest.mark.parametrize("seed", [1, 2])
def test_neither_the_order_of_people_nor_threads_make_a_difference(seed):
    parent, users = random_world(400, seed)
    rank, order = ranks(400), np.random.default_rng(seed).permutation(400)
    labels = candidates.group(made(parent, users), 3, rank, most=50, threads=1)
    np.testing.assert_array_equal(labels, candidates.group(made(parent, users), 3, rank, most=50, threads=2))
    mixed = candidates.group(made(parent, [users[i] for i in order]), 3, rank[order], most=50)
    np.testing.assert_array_equal(mixed, labels[order])


def test_equal_people_can_be_cut_too():
    ready = people(np.array([-1, 0]), np.arange(101), np.ones(100, int), np.ones(100, int))
    labels = candidates.group(ready, 4, ranks(100), most=20)
    assert np.bincount(labels).tolist() == [4] * 25


def looseness(ready, labels) -> float:
    matrix = ready.matrix()
    return float(mdav.medoids(matrix, labels, np.arange(len(labels), dtype=np.uint64))[1].sum())


def test_sixteen_blocks_keep_most_of_what_the_exact_groups_gain():
    """Seeds are fixed, so this never raises a false alarm; the share is measured in `benchmarks/`."""
    vectors = np.random.default_rng(8).normal(size=(40, 5))[np.arange(1200) % 40]
    vectors += np.random.default_rng(9).normal(size=vectors.shape) / 4
    tree = made(*random_world(1200, seed=5))
    for ready in (tree, by_angle(vectors), by_line(vectors)):
        rank = ranks(1200)
        exact = looseness(ready, mdav.by_matrix(ready.matrix(), 5, rank))
        at_random = looseness(ready, np.random.default_rng(3).permutation(1200) // 5)
        cut = looseness(ready, candidates.group(ready, 5, rank, most=75))
        assert (at_random - cut) / (at_random - exact) > 0.85


def test_medoids_without_a_matrix_are_the_same():
    ready, rank = made(*random_world(90, seed=6)), ranks(90)
    labels = candidates.group(ready, 4, rank, most=30)
    for here, there in zip(
        candidates.medoids(ready, labels, rank), mdav.medoids(ready.matrix(), labels, rank), strict=True
    ):
        np.testing.assert_array_equal(here, there)

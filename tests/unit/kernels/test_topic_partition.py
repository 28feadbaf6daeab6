"""Groups by common topics are those of the thesis's algorithms 2 to 5."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels import topic_partition
from tests.reference import naive_microagg as naive

paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(":".join)
terms = st.lists(st.lists(paths, max_size=8), min_size=1, max_size=9)


def taxonomy(users):
    """Number all paths and those above them: (numbers, parents)."""
    known = {
        ":".join(path.split(":")[:n])
        for user in users
        for path in user
        for n in range(1, path.count(":") + 2)
    }
    number = {path: i for i, path in enumerate(sorted(known))}
    return number, np.array([number.get(path.rpartition(":")[0], -1) for path in number], np.int64)


def incidence(users, deepest, threads=None):
    number, parent = taxonomy(users)
    person = np.array([a for a, user in enumerate(users) for _ in user], np.int64)
    category = np.array([number[path] for user in users for path in user], np.int64)
    levels = topic_partition.ancestors(category, parent, deepest)
    counts = [topic_partition.classification(person, level, len(users)) for level in levels]
    return topic_partition.incidence(counts, threads)


@given(terms, st.integers(1, 5), st.sampled_from([1, 2]))
def test_common_counts_are_those_of_algorithms_2_and_3(users, deepest, threads):
    expected = np.array(naive.incidence([naive.classification(users, n + 1) for n in range(deepest)]))
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(incidence(users, deepest, threads), expected)


@st.composite
def matrices(draw):
    size, values = draw(st.integers(1, 20)), draw(st.sampled_from([1, 3, 1000]))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    upper = np.triu(chance.integers(0, values, (size, size)), 1)
    return (upper + upper.T).astype(np.int32), chance.permutation(size)


@given(matrices(), st.integers(2, 6))
def test_groups_are_those_of_algorithms_4_and_5(made, k):
    common, rank = made
    label = topic_partition.partition(common, k, rank.astype(np.uint64))
    groups = [set(np.flatnonzero(label == n).tolist()) for n in range(label.max() + 1)]
    assert groups == naive.clusters(common.tolist(), k, np.argsort(rank).tolist())


@given(matrices(), st.integers(1, 6))
def test_there_are_as_many_groups_of_k_as_fit_and_the_rest_joins_the_last(made, k):
    common, rank = made
    sizes = np.bincount(topic_partition.partition(common, k, rank.astype(np.uint64)))
    assert len(sizes) == max(len(rank) // k, 1)
    assert (sizes[:-1] == k).all()


def test_the_third_member_has_most_in_common_with_both():
    common = np.array([[0, 9, 5, 1], [9, 0, 1, 6], [5, 1, 0, 0], [1, 6, 0, 0]], np.int32)
    label = topic_partition.partition(common, 3, np.arange(4, dtype=np.uint64))
    assert label.tolist() == [0, 0, 0, 0]
    five = np.pad(common, (0, 2))
    assert topic_partition.partition(five, 3, np.arange(6, dtype=np.uint64)).tolist() == [0, 0, 1, 0, 1, 1]


def test_terms_outside_the_tree_count_nowhere():
    found = topic_partition.ancestors(np.array([-1, 2, 0]), np.array([-1, 0, 1]), 2)
    assert [level.tolist() for level in found] == [[-1, 0, 0], [-1, 1, -1]]

"""All levels in one matrix, and blocks of people who have much in common."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels import candidates, topic_groups
from querycloak.kernels.semantic_distance import UNIT
from querycloak.kernels.topic_partition import incidence
from tests.reference import naive_microagg as naive
from tests.unit.kernels.test_topic_partition import taxonomy, terms


def counted(users, deepest):
    number, parent = taxonomy(users)
    person = np.array([a for a, user in enumerate(users) for _ in user], np.int64)
    category = np.array([number[path] for user in users for path in user], np.int64)
    return topic_groups.counted(person, category, parent, deepest, len(users))


def common(users, deepest):
    return naive.incidence([naive.classification(users, level + 1) for level in range(deepest)])


@given(terms, st.integers(1, 5))
def test_one_matrix_of_all_levels_has_the_same_in_common(users, deepest):
    expected = np.array(common(users, deepest))
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(incidence([counted(users, deepest)]), expected)


@given(terms, st.integers(1, 5), st.integers(2, 5), st.randoms(use_true_random=False))
def test_one_block_is_grouped_as_the_thesis_does(users, deepest, k, chance):
    order = list(range(len(users)))
    chance.shuffle(order)
    label = topic_groups.group(counted(users, deepest), k, np.argsort(order).astype(np.uint64), most=100)
    groups = [set(np.flatnonzero(label == n).tolist()) for n in range(label.max() + 1)]
    assert groups == naive.clusters(common(users, deepest), k, order)


@given(terms, st.integers(1, 5))
def test_nothing_in_common_is_one_unit_away_and_much_is_near(users, deepest):
    all_common = np.array(common(users, deepest))
    sizes = sorted(all_common.diagonal().tolist())
    full = max(sizes[len(sizes) * 99 // 100], 1)
    expected = UNIT - np.minimum(all_common, full) * UNIT // full
    apart = topic_groups.Unlikeness.of(counted(users, deepest))
    np.testing.assert_array_equal(apart.matrix(), expected)
    np.testing.assert_array_equal(apart.rows(np.array([0]), np.arange(apart.size)), expected[:1])


def crowd(people, seed=4):
    """People with one of four tastes, who like some things of others too."""
    chance = np.random.default_rng(seed)
    size = chance.integers(1, 12, people)
    person = np.repeat(np.arange(people), size)
    own = 5 * (person % 4) + chance.integers(0, 5, person.size)
    category = np.where(chance.random(person.size) < 0.8, own, chance.integers(0, 20, person.size))
    return topic_groups.counted(person, category, np.full(20, -1), 1, people)


@given(st.integers(40, 90), st.integers(2, 4), st.integers(12, 50), st.randoms(use_true_random=False))
def test_blocks_give_as_many_groups_of_k_and_go_by_rank_alone(people, k, most, chance):
    counts, order = crowd(people), list(range(people))
    chance.shuffle(order)
    rank = np.argsort(order).astype(np.uint64)
    label = topic_groups.group(counts, k, rank, most)
    sizes = np.bincount(label)
    assert sizes.size == people // k
    assert sizes.min() >= k
    assert (sizes > k).sum() <= 1
    place = np.array(order)  # the same people, in the order of their ranks
    mixed = topic_groups._of(counts, place)
    again = topic_groups.group(mixed, k, np.arange(people, dtype=np.uint64), most)
    np.testing.assert_array_equal(again, label[place])


def test_a_block_has_people_of_alike_tastes():
    counts = crowd(200)
    parts = candidates.blocks(topic_groups.Unlikeness.of(counts), np.arange(200), 5, 60)
    assert len(parts) == 4
    shares = [np.bincount(block % 4, minlength=4).max() / block.size for block in parts]
    assert np.mean(shares) > 0.5, "by chance it would be about 0.3"

"""Groups by common topics are those of the thesis's algorithms 2 to 5; and blocks of similar users."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querycloak.methods.microaggregation import mdav, topic_groups
from querycloak.methods.microaggregation.tree_distance import UNIT
from querycloak.text.taxonomy import build
from tests.reference import naive_microagg as naive

paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(":".join)
terms = st.lists(st.lists(paths, max_size=8), min_size=1, max_size=9)


def taxonomy(users):
    """Number all paths and those above them, after the root: (numbers, tree)."""
    known = {
        ":".join(path.split(":")[:n])
        for user in users
        for path in user
        for n in range(1, path.count(":") + 2)
    }
    number = {path: i for i, path in enumerate(["", *sorted(known)])}
    parent = [-1, *(number[path.rpartition(":")[0]] for path in [*number][1:])]
    return number, build(parent, [*number], None)


def counted(users, deepest):
    number, tree = taxonomy(users)
    user = np.array([a for a, own in enumerate(users) for _ in own], np.int64)
    node = np.array([number[path] for own in users for path in own], np.int64)
    return topic_groups.count_categories(user, node, tree, deepest, len(users))


def common(users, deepest):
    return naive.incidence([naive.classification(users, level + 1) for level in range(deepest)])


@given(terms, st.integers(1, 5), st.sampled_from([1, 2]))
def test_common_counts_are_those_of_algorithms_2_and_3(users, deepest, threads):
    expected = np.array(common(users, deepest))
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(topic_groups.incidence(counted(users, deepest), threads), expected)


@st.composite
def matrices(draw):
    size, values = draw(st.integers(1, 20)), draw(st.sampled_from([1, 3, 1000]))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    upper = np.triu(chance.integers(0, values, (size, size)), 1)
    return (upper + upper.T).astype(np.int32), chance.permutation(size)


@given(matrices(), st.integers(2, 6))
def test_groups_are_those_of_algorithms_4_and_5(made, k):
    common, rank = made
    label = topic_groups.partition(common, k, rank.astype(np.uint64))
    groups = [set(np.flatnonzero(label == n).tolist()) for n in range(label.max() + 1)]
    assert groups == naive.clusters(common.tolist(), k, np.argsort(rank).tolist())


@given(matrices(), st.integers(1, 6))
def test_there_are_as_many_groups_of_k_as_fit_and_the_rest_joins_the_last(made, k):
    common, rank = made
    sizes = np.bincount(topic_groups.partition(common, k, rank.astype(np.uint64)))
    assert len(sizes) == max(len(rank) // k, 1)
    assert (sizes[:-1] == k).all()


def test_the_third_member_has_most_in_common_with_both():
    common = np.array([[0, 9, 5, 1], [9, 0, 1, 6], [5, 1, 0, 0], [1, 6, 0, 0]], np.int32)
    label = topic_groups.partition(common, 3, np.arange(4, dtype=np.uint64))
    assert label.tolist() == [0, 0, 0, 0]
    five = np.pad(common, (0, 2))
    assert topic_groups.partition(five, 3, np.arange(6, dtype=np.uint64)).tolist() == [0, 0, 1, 0, 1, 1]


def test_terms_outside_the_tree_count_nowhere():
    tree = build([-1, 0, 1, 2], ["", "a", "b", "c"], None)
    found = topic_groups.count_categories(np.array([0, 0, 1]), np.array([0, 3, 1]), tree, 2, 3)
    assert (found.starts.tolist(), found.category.tolist(), found.count.tolist()) == (
        [0, 2, 3, 3],
        [1, 2, 1],
        [1, 1, 1],
    )


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
    apart, everybody = topic_groups.TopicDistances(counted(users, deepest)), np.arange(len(users))
    np.testing.assert_array_equal(apart.rows(everybody, everybody), expected)
    np.testing.assert_array_equal(apart.rows(np.array([0]), everybody), expected[:1])


def crowd(people, seed=4):
    """People with one of four tastes, who like some things of others too."""
    chance = np.random.default_rng(seed)
    size = chance.integers(1, 12, people)
    person = np.repeat(np.arange(people), size)
    own = 5 * (person % 4) + chance.integers(0, 5, person.size)
    category = np.where(chance.random(person.size) < 0.8, own, chance.integers(0, 20, person.size))
    flat = build([-1, *[0] * 20], [str(n) for n in range(21)], None)
    return topic_groups.count_categories(person, category + 1, flat, 1, people)


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
    mixed = counts.of(place)
    again = topic_groups.group(mixed, k, np.arange(people, dtype=np.uint64), most)
    np.testing.assert_array_equal(again, label[place])


def test_a_block_has_people_of_alike_tastes():
    counts = crowd(200)
    parts = mdav.blocks(topic_groups.TopicDistances(counts), np.arange(200), 5, 60)
    assert len(parts) == 4
    shares = [np.bincount(block % 4, minlength=4).max() / block.size for block in parts]
    assert np.mean(shares) > 0.5, "by chance it would be about 0.3"

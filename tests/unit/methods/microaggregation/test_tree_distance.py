"""Distances of people in a tree equal the ones that sets of ancestors give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.methods.microaggregation.tree_distance import UNIT, People, people, shares
from querycloak.text import user_distance
from tests.reference import naive_mdav

#: Root, Sports, Water Sports, Swimming and Diving, Windsurfing, Regional, Europe, Regions, Mediterranean.
THESIS = [-1, 0, 1, 2, 2, 0, 5, 6, 7]
SWIMMING, WINDSURFING, MEDITERRANEAN = 3, 4, 8


def made(parent: list[int], users: list[dict[int, int]]) -> People:
    start = np.cumsum([0, *(len(user) for user in users)])
    node = np.array([c for user in users for c in user], np.int64)
    times = np.array([w for user in users for w in user.values()], np.int64)
    return people(np.array(parent), start, node, times)


@st.composite
def trees(draw, most=12):
    size = draw(st.integers(1, most))
    return [-1, *(draw(st.integers(0, child - 1)) for child in range(1, size))]


@st.composite
def worlds(draw, most=8):
    parent = draw(trees())
    user = st.dictionaries(st.integers(0, len(parent) - 1), st.integers(1, 5), max_size=5)
    return parent, draw(st.lists(user, min_size=1, max_size=most))


def test_example_3_two_water_sports_are_half_apart():
    assert naive_mdav.delta(THESIS, SWIMMING, WINDSURFING) == 0.5
    assert (
        made(THESIS, [{SWIMMING: 1}, {WINDSURFING: 1}]).rows(np.array([0]), np.array([1]))[0][0] == UNIT // 2
    )


def test_example_4_the_two_users_are_a_fifth_apart():
    users = [{SWIMMING: 1, MEDITERRANEAN: 1}, {WINDSURFING: 1, MEDITERRANEAN: 2}]
    assert made(THESIS, users).matrix()[0, 1] / UNIT == pytest.approx(0.2, abs=1e-8)
    assert naive_mdav.user_distance(THESIS, *users) * 5 == 1


@given(worlds())
def test_a_matrix_equals_the_naive_distances(world):
    parent, users = world
    expected = [[round(naive_mdav.user_distance(parent, a, b) * UNIT) for b in users] for a in users]
    np.testing.assert_allclose(made(parent, users).matrix(), expected, rtol=0, atol=1)


@given(worlds())
def test_rows_equal_the_matrix(world):
    ready = made(*world)
    everybody = np.arange(ready.size)
    matrix = ready.matrix()
    np.testing.assert_array_equal(ready.rows(everybody, everybody), matrix)
    np.testing.assert_array_equal(ready.rows(np.array([0]), everybody[::-1])[0], matrix[0, ::-1])


@given(worlds())
def test_distances_agree_with_those_of_paths(world):
    parent, users = world
    paths = [""]
    for child in range(1, len(parent)):
        above = paths[parent[child]]
        paths.append(f"{above}/{child}" if above else str(child))
    spelled = [{paths[c]: w for c, w in user.items()} for user in users]
    expected = [user_distance(spelled[0], other) for other in spelled]
    row = made(parent, users).rows(np.array([0]), np.arange(len(users)))[0]
    np.testing.assert_allclose(row / UNIT, expected, rtol=0, atol=1e-8)


@given(worlds(), st.randoms(use_true_random=False))
def test_neither_the_order_of_people_nor_of_categories_matters(world, chance):
    parent, users = world
    order = list(range(len(users)))
    chance.shuffle(order)
    mixed = [dict(reversed(users[i].items())) for i in order]
    matrix = made(parent, users).matrix()
    np.testing.assert_array_equal(made(parent, mixed).matrix(), matrix[np.ix_(order, order)])


def random_world(size: int, seed: int, depth: int = 9) -> tuple[list[int], list[dict[int, int]]]:
    """Make up people in a tree with some long branches."""
    chance = np.random.default_rng(seed)
    parent = [-1, *(int(chance.integers(max(0, child - 6), child)) for child in range(1, 6 * depth))]
    users = [
        {int(c): int(chance.integers(1, 9)) for c in chance.integers(1, len(parent), chance.integers(1, 9))}
        for _ in range(size)
    ]
    return parent, users


def test_a_category_far_up_may_be_nearer_than_a_deep_one_close_by():
    chain = [-1, 0, 1, 2, 3, 4, 5, 2]  # 6 is at depth 6 below 2, 7 at depth 3 below 2, 1 above both
    users = [{1: 1, 6: 1}, {7: 1}]
    expected = naive_mdav.user_distance(chain, *users)
    assert naive_mdav.nearest(chain, 7, users[0]) == naive_mdav.delta(chain, 7, 1)
    assert made(chain, users).rows(np.array([0]), np.array([1]))[0][0] == round(expected * UNIT)


def test_long_branches_equal_the_naive_distances():
    parent, users = random_world(40, seed=1)
    expected = [[round(naive_mdav.user_distance(parent, a, b) * UNIT) for b in users] for a in users]
    np.testing.assert_allclose(made(parent, users).matrix(), expected, rtol=0, atol=1)


def test_one_and_two_threads_and_several_strips_give_the_same():
    ready = made(*random_world(700, seed=3))
    one, two = ready.matrix(threads=1), ready.matrix(threads=2)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, one.T)
    np.testing.assert_array_equal(one[300], ready.rows(np.array([300]), np.arange(700))[0])
    some = np.array([650, 3, 411])
    np.testing.assert_array_equal(ready.matrix(some), one[np.ix_(some, some)])


def test_a_tree_too_deep_for_a_common_denominator_is_rounded():
    parent = [-1, *range(60)]
    users = [{60: 1}, {59: 2, 7: 1}, {31: 1}]
    expected = [float(naive_mdav.user_distance(parent, users[0], other)) for other in users]
    row = made(parent, users).rows(np.array([0]), np.arange(3))[0]
    np.testing.assert_allclose(row / UNIT, expected, rtol=0, atol=1e-8)
    assert shares(60)[1] == 1 << 36


def test_equal_fractions_are_equal_numbers_by_whatever_sum():
    """1/3 + 2/3 against 3 x 1/3: a sum of floats would differ in its last digit."""
    parent = [-1, 0, 1, 2, 2, 1]
    ready = made(parent, [{3: 3}, {3: 30}, {4: 3}, {4: 30}])
    matrix = ready.matrix()
    assert len({int(matrix[0, 2]), int(matrix[1, 3]), int(matrix[0, 3]), int(matrix[1, 2])}) == 1


def test_counts_of_one_category_are_added_and_zeros_left_out():
    ready = people(np.array(THESIS), np.array([0, 3, 4]), np.array([3, 3, 8, 3]), np.array([1, 1, 0, 2]))
    assert ready.times.tolist() == [2, 2]
    assert ready.rows(np.array([0]), np.array([1]))[0].tolist() == [0]


def test_nobody_with_any_category_is_no_trouble():
    assert made([-1], [{}, {}]).matrix().tolist() == [[0, 0], [0, 0]]
    assert people(np.array([-1]), np.array([0]), np.array([], int), np.array([], int)).matrix().size == 0

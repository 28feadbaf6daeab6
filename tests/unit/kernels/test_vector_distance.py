"""Distances of vectors equal numpy's, and do not depend on order or threads."""

from __future__ import annotations

import numpy as np

from querycloak.kernels.semantic_distance import UNIT
from querycloak.kernels.vector_distance import STEPS, by_angle, by_line, whole

VECTORS = np.random.default_rng(5).normal(size=(60, 7))


def test_angles_equal_one_minus_the_cosine():
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    np.testing.assert_allclose(by_angle(VECTORS).matrix() / UNIT, 1 - unit @ unit.T, atol=5e-6)


def test_lines_equal_the_norm_of_the_difference():
    gaps = np.linalg.norm(VECTORS[:, None] - VECTORS[None], axis=2)
    longest = 2 * np.abs(VECTORS).max() * np.sqrt(VECTORS.shape[1])
    np.testing.assert_allclose(by_line(VECTORS).matrix() / UNIT, gaps / longest, atol=5e-6)


def test_opposite_ones_are_two_apart_and_zeros_have_no_direction():
    ready = by_angle(np.array([[1.0, 0], [-2, 0], [0, 0], [0, 0], [3, 0]]))
    assert (ready.row(0, np.arange(5)) / UNIT).tolist() == [0, 2, 1, 1, 0]
    assert ready.row(2, np.array([3])).tolist() == [0]


def test_rows_threads_and_order_give_the_same():
    order = np.random.default_rng(6).permutation(len(VECTORS))
    for make in (by_angle, by_line):
        one = make(VECTORS).matrix(threads=1)
        np.testing.assert_array_equal(one, make(VECTORS).matrix(threads=2))
        np.testing.assert_array_equal(one, make(VECTORS).rows(np.arange(60), np.arange(60)))
        np.testing.assert_array_equal(make(VECTORS[order]).matrix(), one[np.ix_(order, order)])
        np.testing.assert_array_equal(make(VECTORS).matrix(order[:9]), one[np.ix_(order[:9], order[:9])])


def test_the_largest_value_takes_all_steps():
    assert whole(np.array([[0.5, -2.0]])).tolist() == [[STEPS // 4, -STEPS]]
    assert whole(np.zeros((2, 3))).tolist() == [[0, 0, 0], [0, 0, 0]]

"""Blocks of alike vectors: every vector is in one, finds its own, and draws what the naive twin draws."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels import alike
from tests.reference.naive_alike import by_nearness

SIZES = st.integers(1, 60)
SEEDS = st.integers(0, 10**6)


def vectors(size, seed, dimensions=8):
    """Directions around a few centres, some of them twice."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(4, dimensions))
    values = centres[chance.integers(4, size=size)] + 0.3 * chance.normal(size=(size, dimensions))
    values[size // 2 : size // 2 + size // 6] = values[: size // 6]
    return np.rint(values / np.linalg.norm(values, axis=1, keepdims=True) * 4096).astype(np.int16)


def members(blocks):
    return [sorted(part.tolist()) for part in np.split(blocks.members, blocks.start[1:-1])]


@given(size=SIZES, seed=SEEDS, nearest=st.integers(1, 9))
def test_one_block_draws_from_the_nearest_of_all(size, seed, nearest):
    values, wanted = vectors(size, seed), vectors(5, seed + 1)
    blocks = alike.cut(values, np.arange(size))
    for turn in range(nearest):
        found = blocks.drawn(wanted, np.full(5, turn, np.uint64), nearest)
        naive = [by_nearness(one, values)[turn % min(nearest, size)] for one in wanted]
        assert found.tolist() == naive


@given(size=SIZES, seed=SEEDS, most=st.integers(1, 20))
def test_every_vector_is_in_one_block_and_draws_from_it(size, seed, most):
    values = vectors(size, seed)
    rows = np.flatnonzero(np.arange(size) % 3 != 1)  # only some may be drawn
    blocks = alike.cut(values, rows, most)
    parts = members(blocks)
    assert sorted(row for part in parts for row in part) == rows.tolist()
    for part in parts:
        assert len(part) <= most or 2 * Counter(map(bytes, values[part])).most_common(1)[0][1] >= len(part)
    home = {row: part for part in parts for row in part}
    for turn in (0, 1, 7):
        found = blocks.drawn(values[rows], np.full(rows.size, turn, np.uint64), 4)
        for row, drawn in zip(rows.tolist(), found.tolist(), strict=True):
            near = [home[row][i] for i in by_nearness(values[row], values[home[row]])]
            assert drawn == near[turn % min(4, len(near))]


def test_blocks_are_halves_and_keep_what_is_alike_together():
    """Two clear directions are cut between them, whatever the order; equal vectors are not cut at all."""
    two = np.zeros((80, 4), np.int16)
    two[::2, 0] = 4096
    two[1::2, 1] = 4096
    two[:, 2] = np.arange(80) % 7
    parts = members(alike.cut(two, np.arange(80), 40))
    assert sorted(parts) == [list(range(0, 80, 2)), list(range(1, 80, 2))]
    same = np.full((50, 4), 2048, np.int16)
    assert members(alike.cut(same, np.arange(50), 8)) == [list(range(50))]


def test_most_of_the_likeness_is_left_in_blocks():
    """Of 600 vectors in blocks of 75: the four nearest are nearly as near as those of all."""
    values = vectors(600, 3, dimensions=16)
    near, blocks = by_nearness, alike.cut(values, np.arange(600), 80)
    products = values.astype(np.int64) @ values.T.astype(np.int64)
    whole = np.mean([products[i, near(values[i], values)[:4]].mean() for i in range(0, 600, 10)])
    rows = np.arange(0, 600, 10)
    found = [blocks.drawn(values[rows], np.full(60, turn, np.uint64), 4) for turn in range(4)]
    assert np.mean([products[rows, row].mean() for row in found]) > 0.95 * whole
    assert products.mean() < 0.6 * whole

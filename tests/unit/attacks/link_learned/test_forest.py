"""Trees as tables give what a walk through each tree gives, and what LightGBM gives, to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks.link_learned import forest

NAN = math.nan


def leaf(value):
    return {"leaf_value": value}


def node(feature, threshold, left, right, *, default_left=True, missing="NaN"):
    return {
        "split_feature": feature, "threshold": threshold, "left_child": left, "right_child": right,
        "default_left": default_left, "missing_type": missing,
    }  # fmt: skip


def walked(tree, row):
    """Go down one tree as LightGBM documents it."""
    while "leaf_value" not in tree:
        value = float(row[tree["split_feature"]])
        if math.isnan(value) and tree["missing_type"] != "NaN":
            value = 0.0
        left = tree["default_left"] if math.isnan(value) else value <= tree["threshold"]
        tree = tree["left_child" if left else "right_child"]
    return tree["leaf_value"]


def scored(trees, rows, features):
    made = forest.of([{"tree_structure": tree} for tree in trees], features)
    return made(np.array(rows, np.float32))


def test_a_tree_worked_by_hand():
    tree = node(1, 0.5, leaf(1.0), node(0, 2.0, leaf(10.0), leaf(100.0), default_left=False))
    rows = [[9, 0.5], [2, 0.6], [3, 0.6], [NAN, 0.6], [9, NAN]]
    assert scored([tree], rows, 2).tolist() == [1, 10, 100, 100, 1]


def test_a_tree_of_one_leaf_and_no_rows():
    assert scored([leaf(3.0), leaf(0.5)], [[1.0]], 1).tolist() == [3.5]
    assert scored([leaf(3.0)], np.zeros((0, 1)), 1).size == 0


def test_where_nothing_was_ever_unknown_unknown_is_zero():
    high, low = (node(0, limit, leaf(1.0), leaf(2.0), missing="None") for limit in (0.5, -0.5))
    assert scored([high], [[NAN]], 1).tolist() == [1]
    assert scored([low], [[NAN]], 1).tolist() == [2]


def test_a_threshold_between_two_short_numbers_keeps_them_apart():
    below, above = np.float32(0.1), np.nextafter(np.float32(0.1), np.float32(1))
    tree = node(0, (float(below) + float(above)) / 2, leaf(1.0), leaf(2.0))
    assert scored([tree], [[below], [above]], 1).tolist() == [1, 2]


def test_too_many_leaves_are_refused():
    tree = leaf(0.0)
    for value in range(forest.MOST_LEAVES):
        tree = node(0, float(value), tree, leaf(1.0))
    with pytest.raises(ValueError, match="17 leaves"):
        forest.of([{"tree_structure": tree}], 1)


VALUES = st.sampled_from([NAN, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0])


def grown(leaves):
    if leaves == 1:
        return st.floats(-1, 1).map(leaf)
    return st.integers(1, leaves - 1).flatmap(
        lambda left: st.builds(
            node,
            st.integers(0, 2),
            st.sampled_from([-1.5, -1.0, 0.0, 0.25, 1.0, 1e300]),
            grown(left),
            grown(leaves - left),
            default_left=st.booleans(),
            missing=st.sampled_from(["NaN", "None"]),
        )
    )


@given(
    st.lists(st.integers(1, forest.MOST_LEAVES).flatmap(grown), min_size=1, max_size=4),
    st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=20),
)
def test_tables_give_what_a_walk_gives(trees, rows):
    expected = [sum((walked(tree, row) for tree in trees), 0.0) for row in rows]
    assert scored(trees, rows, 3).tolist() == expected


@pytest.mark.learn
@pytest.mark.parametrize("seed", [0, 1])
def test_tables_give_what_lightgbm_gives(seed):
    """More rows than a block, unknown values in some columns only, and some that were not unknown before."""
    from querycloak.attacks.link_learned import training

    chance = np.random.default_rng(seed)
    rows = chance.normal(size=(6000, 6)).astype(np.float32)
    rows[:, 2] = np.round(rows[:, 2])
    unknown = chance.random(rows.shape) < 0.2
    unknown[:, 5] = False
    target = (rows[:, 0] + rows[:, 5] + unknown[:, 1] * rows[:, 2]) > 0
    function = training.fit(np.where(unknown, np.nan, rows).astype(np.float32), target, seed)
    asked = chance.normal(size=(3000, 6)).astype(np.float32)
    asked[chance.random(asked.shape) < 0.2] = np.nan
    expected = np.clip(function.trees.predict(asked, num_threads=1), 0, 1).astype(np.float32)
    assert (function(asked) == expected).all()
    assert np.unique(expected).size > 100

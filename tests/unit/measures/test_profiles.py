from __future__ import annotations

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak import measures
from querycloak.errors import NotApplicable
from querycloak.measures.base import LogPair
from querycloak.measures.counts import largest_tree_emd
from querycloak.measures.profiles import ProfileLoss, Records, Tree, losses
from tests.reference.plain_measures import profile_loss

PATHS = ["Arts", "Arts/Music", "Arts/Music/Jazz", "Arts/Film", "Games/Chess", "Sports", "Sports/Soccer/UEFA"]
PEOPLE = ["u", "v", "w"]
records = st.lists(st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PATHS)), max_size=40)


def profiles(rows):
    return {person: Counter(c for u, c in rows if u == person) for person in PEOPLE}


def coded(rows):
    person = np.array([PEOPLE.index(user) for user, _ in rows], np.int64)
    return Records(person, np.array([PATHS.index(path) for _, path in rows], np.int64))


def log(rows):
    frame = pl.DataFrame(rows, schema={"user": pl.String, "category": pl.String}, orient="row")
    return frame.with_row_index("row").cast({"row": pl.Int64})


def test_by_hand():
    found = profile_loss(
        {"u": {"Arts/Music": 3, "Sports": 1}, "v": {"Arts": 1}, "w": {"Sports": 2}},
        {"u": {"Arts/Music": 1, "Sports": 1}, "v": {"Sports": 5}, "w": {}},
    )
    # u: a quarter moves from Arts/Music to Sports, 3 edges; v: everything over 2 edges; w has no profile
    assert found["distance"] == pytest.approx((0.25 * 3 + 2) / 2)
    assert found["largest_distance"] == 3
    assert found["loss"] == pytest.approx((0.25 + 2 / 3 + 1) / 3)
    assert found["loss_worst"] == 1
    assert found["topics"] == pytest.approx((measures.jensen_shannon([3, 1], [1, 1]) + 1 + 1) / 3)
    assert (found["people"], found["people_without_profile"]) == (2, 1)


def test_users_who_are_not_released_have_lost_their_profiles():
    original = log([(f"u{n}", path) for n in range(100) for path in ("Arts/Music", "Sports")])
    found = ProfileLoss()(LogPair(original, original.head(2)))  # of one user in a hundred, unchanged
    assert (found["loss"], found["topics"]) == (pytest.approx(0.99), pytest.approx(0.99))
    assert (found["distance"], found["people"], found["people_without_profile"]) == (0.0, 1, 99)


@given(before=records, after=records)
def test_arrays_agree_with_plain_python(before, after):
    distance, topics = losses(Tree.of(PATHS), len(PEOPLE), coded(before), coded(after))
    first, second = profiles(before), profiles(after)
    for place, person in enumerate(PEOPLE):
        if first[person] and second[person]:
            assert distance[place] == pytest.approx(measures.tree_emd(first[person], second[person]))
        else:
            assert math.isnan(distance[place])
            assert math.isnan(topics[place])


@given(before=records, after=records)
def test_the_measure_of_two_logs_agrees_with_plain_python(before, after):
    expected = profile_loss(profiles(before), profiles(after))
    if not expected["people"]:
        with pytest.raises(NotApplicable):
            ProfileLoss()(LogPair(log(before), log(after)))
        return
    found = ProfileLoss()(LogPair(log(before), log(after)))
    assert found == pytest.approx(expected)
    assert 0 <= found["loss"] <= found["loss_worst"] <= 1


@given(rows=records, scale=st.integers(1, 7))
def test_equal_profiles_are_exactly_0_apart(rows, scale):
    distance, topics = losses(Tree.of(PATHS), len(PEOPLE), coded(rows), coded(rows * scale))
    present = [bool(own) for own in profiles(rows).values()]
    assert np.array_equal(distance == 0.0, present)
    assert np.allclose(topics[present], 0, atol=1e-12)


def test_the_tree_knows_what_lies_above_a_path():
    tree = Tree.of(["A/B/C", "D"])
    assert tree.node.tolist() == [2, 3]
    assert tree.parent.tolist() == [-1, 0, 1, -1]
    assert tree.topic.tolist() == [0, 0, 0, 1]
    assert tree.largest == largest_tree_emd(["A/B/C", "D"]) == 4


def test_fresh_labels_need_the_truth():
    original = log([("u", "Arts"), ("v", "Sports")])
    released = log([("x1", "Sports"), ("x2", "Arts")])
    with pytest.raises(NotApplicable, match="truth"):
        ProfileLoss()(LogPair(original, released))
    truth = pl.DataFrame({"released_row": [1, 0], "label_user": ["u", "v"]})
    assert ProfileLoss()(LogPair(original, released, truth))["loss"] == 0.0


@pytest.mark.parametrize("column", ["user", "category"])
def test_a_log_without_people_or_categories_has_no_profiles(column):
    whole = log([("u", "Arts")])
    with pytest.raises(NotApplicable, match=f"no {column}"):
        ProfileLoss()(LogPair(whole, whole.drop(column)))

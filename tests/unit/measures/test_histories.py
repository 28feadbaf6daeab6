"""Record linkage as paper 003 counts it, by hand and against a slow twin."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.measures import record_linkage
from tests.reference import naive_overlap

history = st.lists(st.sampled_from("abcdef"), max_size=8)
both = st.lists(st.tuples(history, history), min_size=1, max_size=8)


@given(pairs=both)
def test_it_agrees_with_comparing_everything(pairs):
    original, released = ([pair[side] for pair in pairs] for side in (0, 1))
    expected = 100 * float(naive_overlap.record_linkage(original, released))
    assert record_linkage(original, released) == pytest.approx(expected)


def test_histories_as_they_were_are_all_linked_and_strangers_never():
    people = [["a", "b"], ["c"], ["d", "d"]]
    assert record_linkage(people, people) == 100
    assert record_linkage(people, [["x"], [], ["y", "z"]]) == 0


def test_ties_share_the_success():
    people = [["a"], ["a"], ["a"], ["b"]]
    assert record_linkage(people, people) == pytest.approx(100 * (3 * (1 / 3) + 1) / 4)


def test_repetitions_count_as_often_as_both_have_them():
    # The first shares two with the first and one with the second; the second shares one with both.
    people = [["a", "a"], ["a", "b", "c"]]
    assert record_linkage(people, [["a", "a", "a"], ["a"]]) == pytest.approx(100 * (1 + 0.5) / 2)


def test_it_goes_from_released_histories_to_originals():
    # The long original has most in common with both releases; from originals to releases both would be found.
    people = [["a", "b", "c"], ["a"]]
    assert record_linkage(people, [["a", "b"], ["a", "c"]]) == 50


def test_what_is_empty_or_uneven():
    assert math.isnan(record_linkage([], []))
    assert record_linkage([[]], [[]]) == 0
    with pytest.raises(ValueError, match="equally long; got 1 and 2"):
        record_linkage([["a"]], [["a"], ["b"]])

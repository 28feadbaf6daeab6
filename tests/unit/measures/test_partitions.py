"""Two labelings of the same users compared, by hand and against counting all pairs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.measures import jaccard_index, partition_distance, rand_index
from tests.reference import naive_measures as naive

ALL = (partition_distance, rand_index, jaccard_index)
labelings = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n)] * 3)
)


def test_by_hand():
    a, b = [1, 1, 2, 2], [1, 1, 1, 2]
    # I(A) = 1, I(B) = 0.8113, I(A ∩ B) = 1.5
    assert partition_distance(a, b) == pytest.approx((2 * 1.5 - 1 - 0.811278) / 1.5)
    # pairs: 12 in both; 34 only in a; 13, 23 only in b; 14, 24 in neither
    assert rand_index(a, b) == pytest.approx(3 / 6)
    assert jaccard_index(a, b) == pytest.approx(1 / 4)
    assert partition_distance([1, 1, 2, 2], [1, 2, 1, 2]) == 1.0


@given(three=labelings)
def test_they_agree_with_their_definitions(three):
    a, b, _ = three
    assert partition_distance(a, b) == pytest.approx(naive.partition_distance(a, b), abs=1e-12)
    pairs = naive.pairs(a, b)
    if pairs:
        agree = pairs[True, True] + pairs[False, False]
        assert rand_index(a, b) == pytest.approx(agree / pairs.total())
    if together := pairs.total() - pairs[False, False]:
        assert jaccard_index(a, b) == pytest.approx(pairs[True, True] / together)


@given(three=labelings)
def test_the_distance_is_a_metric_between_0_and_1(three):
    a, b, c = three
    assert 0 <= partition_distance(a, b) <= 1
    assert partition_distance(a, b) == pytest.approx(partition_distance(b, a), abs=1e-12)
    assert partition_distance(a, c) <= partition_distance(a, b) + partition_distance(b, c) + 1e-9


@given(three=labelings)
def test_names_of_groups_and_order_of_users_do_not_matter(three):
    a, b, _ = three
    other = [{0: "z", 1: None, 2: (1, 2), 3: 0.5}[label] for label in a]
    for measure in ALL:
        assert measure(other, b) == pytest.approx(measure(a, b))
        assert measure(a[::-1], b[::-1]) == pytest.approx(measure(a, b))
    assert partition_distance(a, other) == pytest.approx(0, abs=1e-12)
    assert rand_index(a, other) == jaccard_index(a, other) == 1


def test_what_is_empty_or_uneven():
    for measure in ALL:
        assert math.isnan(measure([], []))
        with pytest.raises(ValueError, match="equally long; got 1 and 2"):
            measure([1], [1, 2])
    assert partition_distance([1], [2]) == 0
    assert rand_index([1], [2]) == jaccard_index([1], [2]) == jaccard_index([1, 2], [2, 1]) == 1

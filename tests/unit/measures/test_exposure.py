"""PEL, ILR and SRP of paper 003, by hand and against slow twins."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.measures import information_loss_ratio, profile_exposure, semantic_remain
from tests.reference import naive_measures as naive

queries = st.lists(st.sampled_from("abcde"), max_size=12)
shown = st.lists(st.sampled_from("abcdeyz"), max_size=12)
PATHS = ["Arts", "Arts/Music", "Arts/Music/Jazz", "Arts/Film", "Games/Chess", "Sports", "Sports/Soccer/UEFA"]
paths = st.lists(st.sampled_from(PATHS), max_size=15)


@pytest.mark.parametrize(
    ("original", "released", "expected"),
    [
        ("ab", "aa", 18.872),  # acceptance of issue 6
        ("aabc", "abbz", 31.707),  # acceptance of issue 6
        ("aaab", "b", 246.525),  # PAPERS.md: not bounded by 100
        ("ab", "ab", 100.0),
        ("aabb", "ab", 100.0),
        ("ab", "yz", 0.0),
        ("ab", "", 0.0),
    ],
)
def test_exposure_by_hand(original, released, expected):
    assert profile_exposure(original, released) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("measure", [profile_exposure, information_loss_ratio])
@pytest.mark.parametrize("original", ["", "a", "aaa"])
def test_one_distinct_query_has_no_entropy(measure, original):
    assert math.isnan(measure(original, "ab"))


@given(original=queries, released=shown)
def test_exposure_agrees_with_the_sum_over_all_pairs(original, released):
    expected = naive.profile_exposure(original, released)
    assert profile_exposure(original, released) == pytest.approx(expected, nan_ok=True)


@given(original=st.lists(st.sampled_from("abcde"), min_size=2, max_size=12).filter(lambda q: len(set(q)) > 1))
def test_the_history_itself_exposes_all_and_loses_nothing(original):
    assert profile_exposure(original, original) == pytest.approx(100)
    assert information_loss_ratio(original, original) == 0


@given(original=queries, strangers=st.lists(st.sampled_from("xyz"), min_size=1))
def test_exposure_by_strangers_is_nothing(original, strangers):
    found = profile_exposure(original, strangers)
    assert found == 0 or len(set(original)) < 2


@pytest.mark.parametrize("k", [2, 3, 10])
def test_exposure_in_a_group_of_k_with_nothing_in_common_is_one_kth(k):
    """The thesis's theoretical level (Figure 5.3): a k-th of the shared history is one's own."""
    group = [[f"{person}:{query}" for query in range(20 * k)] for person in range(k)]
    together = [query for history in group for query in history[:20]]
    assert profile_exposure(group[0], together) == pytest.approx(100 / k)


def test_loss_ratio_by_hand():
    assert information_loss_ratio("abcd", "ab") == pytest.approx(50)
    assert information_loss_ratio("ab", "abcd") == pytest.approx(100)
    assert information_loss_ratio("ab", "xy") == 0  # which things they are does not count
    assert information_loss_ratio("ab", "") == 100
    assert information_loss_ratio("ab", "abcdefgh") == pytest.approx(200)


@given(original=queries, released=shown.filter(bool))
def test_loss_ratio_agrees_with_the_formula(original, released):
    expected = naive.information_loss_ratio(original, released)
    assert information_loss_ratio(original, released) == pytest.approx(expected, nan_ok=True, abs=1e-9)


def test_remain_by_hand():
    before = ["Arts/Music", "Arts/Music", "Arts/Film", "Games"]
    after = ["Arts/Music", "Games/Chess", "Games/Chess", "Arts"]
    assert semantic_remain(before, after, 1) == 3 / 4  # Arts twice, Games once
    assert semantic_remain(before, after, 2) == 1 / 3  # Games does not reach level 2
    assert math.isnan(semantic_remain(before, after, 3))
    assert semantic_remain(before, [], 1) == 0
    with pytest.raises(ValueError, match="at least 1"):
        semantic_remain(before, after, 0)


@given(before=paths, after=paths, level=st.integers(1, 4))
def test_remain_agrees_with_crossing_out(before, after, level):
    found = semantic_remain(before, after, level)
    assert found == pytest.approx(naive.semantic_remain(before, after, level), nan_ok=True)
    assert math.isnan(found) or 0 <= found <= 1
    assert semantic_remain(before, before, level) in (1.0, pytest.approx(math.nan, nan_ok=True))


@pytest.mark.parametrize("k", [2, 5])
def test_remain_without_common_interests_is_one_kth_on_average(k):
    """Equation 5.9: users of different topics, each with its quota of the shared history."""
    group = [[f"Topic {person}"] * 10 * (person + 1) for person in range(k)]
    together = [path for history in group for path in history[: len(history) // k]]
    kept = [semantic_remain(history, together, 1) for history in group]
    assert sum(kept) / k == pytest.approx(1 / k)

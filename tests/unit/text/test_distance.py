"""Distances against the values printed in the papers, and against slow versions of themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import ParameterError
from querycloak.text import centroid_category, semantic_distance, similarity, user_distance

SWIMMING = "Sports/Water Sports/Swimming and Diving"
WINDSURFING = "Sports/Water Sports/Windsurfing"
MEDITERRANEAN = "Regional/Europe/Regions/Mediterranean"

paths = st.lists(st.sampled_from("abc"), max_size=4).map("/".join)
histories = st.dictionaries(paths, st.integers(0, 5), max_size=8)


def ancestors(path: str) -> set[str]:
    """Spell out everything above a path, the root and the path itself included."""
    parts = path.split("/")
    return {"/".join(parts[: i + 1]) for i in range(len(parts))} | {"root"}


def present(history: dict[str, int]) -> dict[str, int]:
    return {path: count for path, count in history.items() if count}


def slow_user_distance(a: dict[str, int], b: dict[str, int]) -> float:
    def one_way(these: dict[str, int], those: dict[str, int]) -> float:
        return sum(n * min((semantic_distance(p, q) for q in those), default=1.0) for p, n in these.items())

    total = sum(a.values()) + sum(b.values())
    return (one_way(a, b) + one_way(b, a)) / total if total else 0.0


def test_the_example_of_the_thesis() -> None:
    assert semantic_distance(SWIMMING, WINDSURFING) == 0.5
    one, other = {SWIMMING: 1, MEDITERRANEAN: 1}, {WINDSURFING: 1, MEDITERRANEAN: 2}
    assert user_distance(one, other) == pytest.approx(0.2, abs=1e-15)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("A", "A/A1", 0.58496), ("A/A1", "A/A2", 0.41504), ("A/A1/A1x", "B/B1", 0.12553), ("A", "A", 1.0)],
)
def test_similarity_counts_the_concept_itself_and_the_root(a: str, b: str, expected: float) -> None:
    assert similarity(ancestors(a), ancestors(b)) == pytest.approx(expected, abs=5e-6)


def test_concepts_with_nothing_in_common_have_similarity_zero() -> None:
    assert similarity({1, 2}, {3}) == 0.0


def test_two_empty_sets_are_no_concepts() -> None:
    with pytest.raises(ParameterError):
        similarity(set(), set())


@given(paths, paths)
def test_semantic_distance_is_the_share_of_levels_not_shared(a: str, b: str) -> None:
    above_a, above_b = (ancestors(p) - {"root", ""} if p else set() for p in (a, b))
    together = above_a | above_b
    expected = len(above_a ^ above_b) / len(together) if together else 0.0
    assert semantic_distance(a, b) == pytest.approx(expected)
    assert semantic_distance(a, b) == semantic_distance(b, a)
    assert (semantic_distance(a, b) == 0) == (a == b)


@given(paths, paths, paths)
def test_semantic_distance_keeps_the_triangle_inequality(a: str, b: str, c: str) -> None:
    assert semantic_distance(a, c) <= semantic_distance(a, b) + semantic_distance(b, c) + 1e-12


@given(histories, histories)
def test_user_distance_equals_comparing_each_with_each(a: dict[str, int], b: dict[str, int]) -> None:
    expected = slow_user_distance(present(a), present(b))
    assert user_distance(a, b) == pytest.approx(expected, abs=1e-12)
    assert user_distance(b, a) == pytest.approx(expected, abs=1e-12)
    assert 0 <= user_distance(a, b) <= 1


@given(histories)
def test_a_history_is_no_distance_from_itself(history: dict[str, int]) -> None:
    assert user_distance(history, history) == 0


def test_a_history_is_far_from_an_empty_one() -> None:
    assert user_distance({"a": 3}, {}) == 1
    assert user_distance({"a": 3}, {"a": 0}) == 1
    assert user_distance({}, {}) == 0


@given(histories.filter(lambda history: any(history.values())))
def test_the_centroid_is_nearest_to_all_weighted_categories(history: dict[str, int]) -> None:
    counts = present(history)
    totals = {p: round(sum(n * semantic_distance(p, q) for q, n in counts.items()), 9) for p in counts}
    assert centroid_category(history) == min(sorted(totals), key=totals.__getitem__)


def test_the_centroid_weighs_repetitions() -> None:
    assert centroid_category({"A/x": 1, "B/y": 5}) == "B/y"


def test_ties_go_to_the_first_name_whatever_the_order() -> None:
    assert centroid_category({"B": 1, "A": 1}) == centroid_category({"A": 1, "B": 1}) == "A"


@pytest.mark.parametrize("counts", [{}, {"A": 0}, {"A": -1}, {"A": float("nan")}])
def test_counts_that_mean_nothing_are_refused(counts: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        centroid_category(counts)

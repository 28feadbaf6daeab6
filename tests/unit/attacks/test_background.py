"""`link-background`: a few known searches of a person, and the label they lead to."""

from __future__ import annotations

import polars as pl
import pytest

from querycloak.attacks.finding import NotApplicable
from tests.unit.attacks.made import COHORT, SWAP, K, found, guess, table

KEPT = {"methods": [{"method": "rules", "settings": {}}]}


def _known(**queries: list[str]) -> dict[str, pl.DataFrame]:
    rows = [(target, query) for target, some in queries.items() for query in some]
    return {"samples": pl.DataFrame(rows, schema=["user", "query"], orient="row")}


def test_the_label_that_goes_with_all_known_strings_wins():
    frame = table(["a", "b", "a", "b", "c"], ["x", "x", "y", "z", "y"])
    answer = guess("link-background", frame, KEPT, _known(t1=["x", "y"], t2=["z", "x"]))
    assert dict(zip(answer.target, answer.guess, strict=True)) == {"t1": "a", "t2": "b"}
    assert answer.candidates.tolist() == [1, 1]
    assert answer.details["share_with_one_candidate"] == 1


def test_a_rare_string_says_more_than_a_common_one():
    frame = table(["a", "b", "c", "d", "e"], ["common", "common", "common", "common", "rare"])
    answer = guess("link-background", frame, KEPT, _known(t=["common", "rare"]))
    assert answer.guess.to_list() == ["e"]
    assert answer.candidates.tolist() == [5]


def test_strings_that_were_not_released_find_nobody():
    answer = guess("link-background", table(["a"], ["x"]), KEPT, _known(t=["other"], s=["x"]))
    assert answer.guess.to_list() == [None, "a"]
    assert answer.details["share_not_found"] == 0.5


@pytest.mark.parametrize("certificate", [SWAP, COHORT])
def test_strings_the_release_never_showed_are_no_trouble(certificate):
    answer = guess("link-background", table(["a", "b"], ["x", "y"]), certificate, _known(t=["p", "q"]))
    assert answer.guess.to_list() == [None]


def test_swap_gives_most_people_away_and_cohort_one_in_k():
    """Seeded: 600 users; by fresh draws the second line would fail less than once in a million."""
    assert found("link-background", "swap").low > 3 / K
    cohort = found("link-background", "cohort")
    assert cohort.success < 1 / K + 5 * (0.1 * 0.9 / cohort.n) ** 0.5
    assert cohort.bound is None


def test_it_needs_samples():
    with pytest.raises(NotApplicable, match="samples"):
        guess("link-background", table(["a"], ["x"]), KEPT)

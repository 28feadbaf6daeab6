"""`link-volume`: volumes known from elsewhere beat `cohort` by the busiest member's share, and no more."""

from __future__ import annotations

import polars as pl
import pytest

from querycloak.attacks.run import attack
from querycloak.errors import NotApplicable
from tests.unit.attacks.made import COHORT, SWAP, K, found, guess, log, made, table


def _two_cohorts() -> pl.DataFrame:
    labels, strings = [], []
    for turn in range(20):
        for name, people in (("red", "ab"), ("blue", "cd")):
            labels += [people[turn % 2], people[1 - turn % 2]]
            strings += [f"{name} {turn}"] * 2
    return table(labels, strings)


def test_the_busiest_of_a_cohort_is_guessed_for_all_of_it():
    volumes = pl.DataFrame({"user": ["a", "b", "c", "d"], "count": [10, 70, 50, 30]})
    frame = _two_cohorts()
    answer = guess("link-volume", frame, COHORT, {"volumes": volumes})
    expected = ["b" if query.startswith("red") else "c" for query in frame["query"]]
    assert answer.guess.to_list() == expected
    assert answer.details["cohorts_told_apart"] == 2


def test_people_of_unknown_volume_count_as_idle_and_unseen_ones_do_not_matter():
    volumes = pl.DataFrame({"user": ["nobody here", "a", "d"], "count": [1000, 1, 1]})
    answer = guess("link-volume", _two_cohorts(), COHORT, {"volumes": volumes})
    assert set(answer.guess) == {"a", "d"}


def test_it_claims_no_bound_and_comes_near_the_busiest_members_share():
    finding = found("link-volume", "cohort")
    assert finding.bound is None
    assert finding.low > 1 / K
    assert finding.success < _busiest_share() + 0.01


def _busiest_share() -> float:
    """The share of rows by the busiest member of each true cohort: no guess by cohort does better."""
    case = made("cohort")
    counts = case.author.value_counts(name="n")
    first = log().sort("time", "row").unique("user", keep="first", maintain_order=True)["user"]
    seats = pl.DataFrame({"original_user": first, "cohort": [i // K for i in range(len(first))]})
    best = counts.join(seats, on="original_user").group_by("cohort").agg(pl.col("n").max())
    return best["n"].sum() / len(case.author)


def test_swap_shows_volumes_itself():
    case = made("swap")
    volumes = log().group_by("user").agg(count=pl.len())
    volume = guess("link-volume", case.release, case.certificate, {"volumes": volumes})
    repeat = guess("link-repeat", case.release, case.certificate)
    assert volume.guess.equals(repeat.guess)
    assert volume.details["volumes_shown"] > 0.95


def test_it_needs_volumes():
    with pytest.raises(NotApplicable, match="volumes"):
        guess("link-volume", _two_cohorts(), SWAP)


def test_volumes_do_not_help_against_fresh_pseudonyms():
    """Whose pseudonym is whose is not known, so a true volume cannot be that of a label."""
    case = made("cohort")
    fresh = {user: f"pseudonym {n}" for n, user in enumerate(sorted(log()["user"].unique()))}
    release = case.release.with_columns(pl.col("user").replace_strict(fresh))
    label = pl.col("original_user").replace_strict(fresh)
    truth = case.truth.with_columns(original_label=label, label_user=case.release["user"])
    (finding,) = attack(release, case.certificate, case.original, truth, ["link-volume"])
    assert finding.not_applicable is not None or finding.success < 1.2 / K

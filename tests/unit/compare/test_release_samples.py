"""Samples of a release: whose sessions they hold, and what a made-up log is made of."""

from __future__ import annotations

import polars as pl
import pytest

import querycloak as qc
from querycloak.compare.plan import Job, preset_plan
from querycloak.compare.release_samples import SAMPLES, draw_release_sample, synthesise
from querycloak.compare.spec import parse_attacks, parse_candidates
from querycloak.compare.worker import run
from querycloak.errors import UnknownName
from querycloak.registry import ATTACKS, MEASURES
from tests.support import logs


@pytest.fixture(scope="module")
def log():
    return logs.made_up(users=300, seed=3)


@pytest.fixture(scope="module")
def release(log):
    return qc.protect(log, "short-sessions", k=3, seed=1)


@pytest.mark.parametrize(("kind", "number"), [("small", 3), ("5%", 15)])
def test_a_sample_has_all_released_rows_of_some_people(log, release, kind, number):
    shown, truth, people = release.log.frame, release.truth, log.frame["user"]
    part = draw_release_sample(kind, shown, truth, people, seed=4)
    assert part.people is not None
    assert part.people.len() == part.people.n_unique() == number
    theirs = truth.filter(pl.col("original_user").is_in(part.people.implode()))["released_row"]
    assert part.truth["released_row"].to_list() == theirs.to_list()
    assert part.release["row"].to_list() == theirs.to_list()
    assert set(part.known_users(log.frame)["user"]) == set(part.people)
    again = draw_release_sample(kind, shown, truth, people, seed=4)
    assert again.release.equals(part.release)
    assert not draw_release_sample(kind, shown, truth, people, seed=5).people.equals(part.people)


def test_a_small_sample_is_small_in_a_large_log():
    people = pl.Series([str(n) for n in range(200_000)])
    truth = pl.DataFrame({"released_row": [0], "original_user": ["1"]})
    part = draw_release_sample("small", pl.DataFrame({"row": [0]}), truth, people, seed=1)
    assert part.people is not None
    assert part.people.len() == 1_000


def sessions(*asked):
    """Give a release of one session for each list of `topic/query`."""
    rows = [(f"s{n}", one, n) for n, session in enumerate(asked) for one in session]
    return pl.DataFrame(
        {
            "row": range(len(rows)),
            "user": [user for user, _, _ in rows],
            "query": [one for _, one, _ in rows],
            "time": pl.Series([n * 3_600_000_000 for *_, n in rows], dtype=pl.Datetime("us", "UTC")),
            "rank": [1] * len(rows),
            "category": [one for _, one, _ in rows],
        }
    )


def test_a_made_up_log_goes_the_ways_of_the_release():
    # A is followed by B, B by nothing or by B: so no session begins with B, and A never follows anything.
    shown = sessions(["A/1", "B/1"], ["A/2", "B/2", "B/3"], ["A/1"])
    part = synthesise(pl.concat([shown] * 20).with_row_index("at").with_columns(
        row=pl.col("at").cast(pl.Int64), user=pl.col("user") + (pl.col("at") // shown.height).cast(pl.String)
    ).drop("at"), seed=1)  # fmt: skip
    found = [session["query"].to_list() for session in part.release.partition_by("user", maintain_order=True)]
    assert len(found) == 60
    assert all(session[0].startswith("A") for session in found)
    assert all(query.startswith("B") for session in found for query in session[1:])
    assert {len(session) for session in found} == {1, 2, 3}
    assert set(part.release["query"]) == set(shown["query"])
    assert (part.release["query"] == part.release["category"]).all()
    assert part.people is None


def test_a_made_up_log_holds_nothing_but_the_release_and_is_nobodys(log, release):
    shown = release.log.frame
    part = synthesise(shown, seed=2)
    assert set(part.release["query"]) <= set(shown["query"])
    assert set(part.release["time"]) <= set(shown["time"])
    assert not set(part.release["user"]) & (set(shown["user"]) | set(log.frame["user"]))
    assert part.release["user"].n_unique() == shown["user"].n_unique()
    assert set(part.release.columns) == {"row", "user", "query", "time"}
    assert part.truth["original_user"].null_count() == part.truth.height == part.release.height
    assert part.truth["made_up"].all()
    assert synthesise(shown, seed=2).release.equals(part.release)


def test_an_empty_release_makes_an_empty_log(release):
    assert synthesise(release.log.frame.clear(), seed=1).release.height == 0


def test_samples_are_asked_for_beside_settings():
    whole, small, synthetic = parse_candidates(
        ["short-sessions:k=5", "short-sessions:k=5:sample=small,synthetic"]
    )
    assert [one.name for one in (whole, small)] == ["short-sessions k=5", "short-sessions k=5 (small)"]
    assert [one.sample for one in (whole, small, synthetic)] == [None, "small", "synthetic"]
    assert len({one.key() for one in (whole, small, synthetic)}) == 3
    assert [one.varied_value() for one in (small, synthetic)] == [5, 5]
    assert small.series == "short-sessions (small)"
    with pytest.raises(UnknownName, match="no sample is called `large`"):
        parse_candidates(["short-sessions:sample=large"])


def test_the_preset_names_what_there_is():
    plan = preset_plan("search-data-sharing")
    assert len(plan.candidates) == 12
    assert {one.sample for one in plan.candidates} == {None, *SAMPLES}
    drop, terms = (
        [one.varied_value() for one in plan.candidates if one.series == line]
        for line in (
            "rules + short-sessions max_words=6 max_letters=60",
            "short-sessions + rules max_words=6 max_letters=60 rare=terms",
        )
    )
    assert drop == terms == [5, 10, 30, 100]
    assert all(attack.name in ATTACKS.names() for attack in plan.attacks)
    assert all(name in MEASURES.names() for name in plan.measures)


def test_a_job_attacks_the_people_of_a_sample(log, tmp_path):
    path = tmp_path / "log.parquet"
    log.frame.drop("row").write_parquet(path)
    attacks = parse_attacks(["link-overlap", "link-window"])
    found = {
        one.sample: run(Job(one, attacks, ("release_rate",), seed=1), path, tmp_path)
        for one in parse_candidates(["short-sessions:k=3", "short-sessions:k=3:sample=5%,synthetic"])
    }
    assert [found[kind]["findings"]["link-overlap"]["n"] for kind in (None, "5%")] == [300, 15]
    assert found["synthetic"]["labels"] == "made up"
    assert found[None]["labels"] == found["5%"]["labels"] == "one person each"
    assert found[None]["measures"]["release_rate"] > found["5%"]["measures"]["release_rate"] > 0
    assert "part of somebody's history" in found[None]["findings"]["link-window"]["not_applicable"]

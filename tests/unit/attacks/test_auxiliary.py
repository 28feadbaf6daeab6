"""Auxiliary information: what requests draw, what they reveal, and what they do not."""

from __future__ import annotations

import copy
from typing import ClassVar

import polars as pl
import pytest

import querycloak as qc
from querycloak.attacks import Attribution, TrainingRelease, run
from querycloak.attacks.auxiliary import (
    CandidateRecords,
    EarlySearches,
    Frequencies,
    Histories,
    KnownRecords,
    KnownSearches,
    KnownVolumes,
    LabelledTraces,
    Targets,
    TrainingRecords,
    TrainingSearches,
)
from querycloak.attacks.base import Attack
from querycloak.attacks.case import Case
from querycloak.compare import worker
from querycloak.compare.plan import Job
from querycloak.compare.spec import parse_attacks, parse_candidates
from querycloak.engines.release import protect_like
from querycloak.errors import UsageError
from querycloak.knowledge import Knowledge
from querycloak.registry import ATTACKS
from tests.support.logs import made_up
from tests.support.releases import release as shared_release


@pytest.fixture(scope="module")
def log():
    return made_up(40, 3, categories=True)


@pytest.fixture(scope="module")
def release(log):
    return shared_release(log, "cohort", k=3, seed=1)


class Learner(Attack):
    """Guesses the label, after a look at a training release."""

    name, game = "learner", "attribution"
    frames: ClassVar[list[pl.DataFrame]] = []

    def requests(self):
        return (TrainingRelease(users=30, seed=2),)

    def guess(self, view):
        self.frames.append(view.auxiliary["training"])
        return Attribution(view.release["user"])


@pytest.fixture
def learner(monkeypatch):
    monkeypatch.setattr(ATTACKS, "added", {"learner": Learner})
    Learner.frames.clear()
    return Learner


def test_an_attack_that_learns_gets_a_release_of_a_synthetic_log(log, release, learner):
    def protect(other):
        return shared_release(other, "cohort", k=3, seed=5)

    args = release.log.frame, release.certificate, log.frame, release.truth, ["learner"]
    (found,) = run.attack(*args, protect=protect)
    assert found.not_applicable is None
    (frame,) = learner.frames
    assert {"released_row", "user", "query", "author", "original_query", "original_time"} <= set(
        frame.columns
    )
    assert 0 < frame["author"].n_unique() <= 30
    assert (frame["query"] == frame["original_query"]).all()  # `cohort` changes labels only
    assert found.knowledge is Knowledge.RELEASE


def test_the_api_runs_the_methods_and_settings_of_the_certificate(log, release, learner):
    (found,) = qc.attack(release, log, "learner")
    assert found.not_applicable is None
    (frame,) = learner.frames
    assert (frame["user"] != frame["author"]).any()  # labels of `cohort`
    assert (frame["query"] == frame["original_query"]).all()
    qc.attack(release, log, "learner")
    assert learner.frames[1].equals(frame), "the same request on the same case draws the same data"


def test_a_comparison_runs_the_methods_of_each_candidate(log, learner, tmp_path):
    log.frame.drop("row").write_parquet(tmp_path / "log.parquet")
    (candidate,) = parse_candidates(["cohort:k=3"])
    job = Job(candidate, parse_attacks(["learner"]), ("release_rate",), seed=1)
    found = worker.run(job, tmp_path / "log.parquet", tmp_path)["findings"]["learner"]
    assert found["not_applicable"] is None
    assert len(learner.frames) == 1


def test_a_method_that_is_not_installed_or_a_table_cannot_be_run_on_a_training_log(log, release):
    document = release.certificate
    assert protect_like(document) is not None
    other = copy.deepcopy(document)
    other["methods"][0]["method"] = "not-installed"
    table = shared_release(log, "dp-histogram", seed=1).certificate
    for refused in (other, table, {}):
        assert protect_like(refused) is None


def test_a_training_log_that_the_methods_refuse_makes_the_attack_not_applicable(log, release, learner):
    def refuse(other):
        raise UsageError("no")

    args = release.log.frame, release.certificate, log.frame, release.truth, ["learner"]
    (found,) = run.attack(*args, protect=refuse)
    assert found.not_applicable == "its methods cannot be run here on a training log: no"


def test_without_the_methods_an_attack_that_learns_does_not_apply(log, release, learner):
    (found,) = run.attack(release.log.frame, release.certificate, log.frame, release.truth, ["learner"])
    assert found.not_applicable == "its methods cannot be run here on a training log"
    assert not learner.frames


@pytest.mark.parametrize(
    ("request_", "knowledge"),
    [
        (KnownVolumes(), Knowledge.VOLUMES),
        (Frequencies(), Knowledge.FREQUENCIES),
        (KnownSearches(10), Knowledge.TEXTS),
        (KnownSearches(10, time="hour"), Knowledge.SEARCHES),
        (KnownSearches(10, time="day"), Knowledge.SEARCHES),
        (Histories(), Knowledge.HISTORIES),
        (TrainingRelease(10), Knowledge.RELEASE),
        (Targets(10), Knowledge.RELEASE),
        (LabelledTraces(10), Knowledge.OTHERS),
        (KnownRecords(10), Knowledge.RELEASE),
        (KnownRecords(10, history=3), Knowledge.SEARCHES),
        (EarlySearches(10, 10), Knowledge.SEARCHES),
        (TrainingSearches(10, 10), Knowledge.OTHERS),
        (TrainingRecords(10, 10), Knowledge.OTHERS),
        (CandidateRecords(10, 10), Knowledge.RELEASE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_each_request_lets_the_attacker_know(request_, knowledge):
    assert request_.knowledge() == knowledge


def test_the_knowledge_of_an_attack_is_that_of_all_its_requests():
    known = {name: ATTACKS.get(name)(ATTACKS.get(name).Settings()).knowledge() for name in ATTACKS.names()}
    assert known["link-repeat"] == known["guess"] == known["predecessor"] == Knowledge.RELEASE
    assert known["link-volume"] == Knowledge.VOLUMES
    assert known["link-overlap"] == Knowledge.HISTORIES
    assert known["link-background"] == Knowledge.TEXTS
    assert known["bayes-concept"] == Knowledge.FREQUENCIES
    assert known["link-learned"] == Knowledge.OTHERS


def test_what_attacks_see_is_described_by_the_names_of_requests():
    seen = {one["name"]: one["sees"] for one in qc.api.describe_attacks()}
    assert seen["link-repeat"] == seen["predecessor"] == ["release"]
    assert seen["link-background"] == ["release", "samples"]
    assert seen["link-learned"] == ["release", "labelled", "targets", "told"]
    assert seen["copy"] == ["truth"]


def test_known_times_are_cut(log, release):
    case = Case.of(release.log.frame, release.certificate, log.frame, release.truth)
    days = KnownSearches(5, time="day").draw(case).frame
    hours = KnownSearches(5, time="hour").draw(case).frame
    assert days.columns == hours.columns == ["user", "query", "time"]
    assert days["query"].equals(hours["query"])
    assert (hours["time"].dt.minute() == 0).all()
    assert (days["time"] == hours["time"].dt.truncate("1d")).all()
    assert KnownSearches(5, time="day").original_columns == {"time"}


def test_known_searches_are_distinct_texts():
    """Three clicks of one search are not three known searches."""
    queries = ["a", "a", "a", "a", "b", "c", None, "a", "a", "b", "b", "b", "b", None]
    frame = pl.DataFrame({"row": range(14), "user": ["u"] * 7 + ["v"] * 7, "query": queries})
    truth = pl.DataFrame(
        {"released_row": frame["row"], "original_row": frame["row"], "original_user": frame["user"]}
    ).with_columns(released_after=0)
    case = Case.of(frame, {}, frame, truth)
    for seed in range(20):
        known = KnownSearches(10, searches=3, seed=seed).draw(case)
        assert known.people == {"target 0": "u"}  # the other has two texts
        assert sorted(known.frame["query"]) == ["a", "b", "c"]
    two = KnownSearches(10, searches=2).draw(case)
    assert sorted(two.people.values()) == ["u", "v"]
    assert two.frame.group_by("user").agg(pl.col("query").n_unique())["query"].to_list() == [2, 2]

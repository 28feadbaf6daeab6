"""`link-learned` finds what can be seen, is at chance where nothing can, and gets no label of a target."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from querycloak.attacks import link_learned, run
from querycloak.attacks.auxiliary import KnownRecords, LabelledTraces, Targets
from querycloak.attacks.base import AttackerView, ClusteredTrace, TraceClusters
from querycloak.attacks.case import Case
from querycloak.attacks.finding import Finding
from querycloak.attacks.link_learned import LinkLearned
from querycloak.errors import NotApplicable, UsageError
from querycloak.registry import ATTACKS
from tests.unit.attacks.link_learned.traces import START, Trace, drawn, labelled

pytestmark = pytest.mark.learn


def attacked(trace: Trace, **settings: Any) -> Finding:
    chosen = {"targets": 12, "functions": 5, "seed": 1} | settings
    texts = {name: str(value) for name, value in chosen.items()}
    return run.attack(trace.release, {}, trace.original, trace.truth, ["link-learned"], texts)[0]


def guessed(trace: Trace, **settings: Any) -> TraceClusters:
    """What the attack gives, before anybody scores it."""
    attack = LinkLearned(LinkLearned.Settings(**({"targets": 4, "functions": 2} | settings)))
    case = Case.of(trace.release, {}, trace.original, trace.truth)
    known = {one.name: one.draw(case).frame for one in attack.requests()}
    return attack.guess(AttackerView(case.release, {}, known))


@pytest.fixture(scope="module")
def marked() -> Finding:
    return attacked(drawn(marked=True))


@pytest.fixture(scope="module")
def alike() -> Finding:
    return attacked(drawn())


def test_a_marker_that_one_relation_sees_is_found(marked):
    assert marked.success >= 0.99
    assert next(iter(marked.details["importances"])) == "D_NumberClicks"
    assert marked.structure["error"]["mean"] <= 0.01
    assert marked.details["area_under_curve"] >= 0.99


def test_fakes_that_are_drawn_like_real_searches_leave_the_attack_at_chance(alike):
    """Each expected success is exactly 0.5, whatever the clusters. The seed is fixed; of 12 more, 10 held."""
    assert alike.low <= 0.5 <= alike.high
    assert alike.high - alike.low < 0.1
    assert alike.details["area_under_curve"] == pytest.approx(0.5, abs=0.05)


def test_a_finding_has_structure_semantic_and_relative_privacy(marked):
    told = marked.as_dict()
    assert {"structure", "semantic", "relative"} <= told.keys()
    assert told["success"] == pytest.approx(1 - told["structure"]["error"]["mean"])
    assert (told["structure"]["parts"], told["relative"]["parts"]) == (2, 10)
    for numbers in (told["structure"]["error"], told["semantic"]["worst"], told["relative"]["error"]):
        assert numbers["n"] == 12
        assert 0 <= numbers["low"] <= numbers["mean"] <= numbers["high"] <= 1
        assert numbers["values"] == sorted(numbers["values"])
    assert told["semantic"]["worst"]["mean"] <= told["semantic"]["mean"]["mean"]


def test_found_fakes_cost_all_semantic_privacy_in_the_worst_case(marked, alike):
    """One cluster is her very searches, so its profile is hers."""
    assert marked.semantic["worst"]["mean"] == pytest.approx(0.0, abs=1e-9)
    assert alike.semantic["worst"]["mean"] > 0.0


def test_the_sample_is_stated(marked):
    assert (marked.details["targets"], marked.details["people"], marked.details["learned_from"]) == (
        12,
        24,
        12,
    )
    assert (marked.details["landing_pages_from"], marked.details["functions"]) == ("nothing", 5)


@pytest.mark.parametrize("aggregate", ["mean", "majority"])
def test_other_ways_to_agree_find_the_marker_too(aggregate):
    finding = attacked(drawn(marked=True), targets=4, functions=3, aggregate=aggregate)
    assert finding.success >= 0.99
    assert (finding.relative is None) == (aggregate == "majority")


def test_pairs_of_fakes_may_be_learned_from_too():
    finding = attacked(drawn(marked=True), targets=4, functions=3, pairs="all")
    assert finding.success >= 0.99
    assert attacked(drawn(), functions=3, pairs="all").low <= 0.5


def test_history_names_the_cluster(marked):
    finding = attacked(drawn(marked=True), targets=4, history=2)
    assert finding.structure["named"]["mean"] == 0.0
    assert finding.semantic["named"]["mean"] == pytest.approx(0.0, abs=1e-9)
    assert "named" not in marked.structure


def test_no_label_of_a_target_reaches_the_attack():
    """Labels of targets turned round change no guess; those of others do."""
    trace = drawn()
    targets = LinkLearned.Settings(targets=4, functions=2)
    case = Case.of(*[trace.release, {}, trace.original, trace.truth])
    people = Targets(targets.targets).draw(case).frame["user"].implode()
    for theirs, same in (
        (pl.col("original_user").is_in(people), True),
        (~pl.col("original_user").is_in(people), False),
    ):
        turned = pl.when(theirs).then(~pl.col("fake")).otherwise("fake")
        other = trace._replace(truth=trace.truth.with_columns(fake=turned))
        before, after = guessed(trace), guessed(other)
        alike = [np.array_equal(a.score, b.score) for a, b in zip(before.people, after.people, strict=True)]
        assert all(alike) if same else not any(alike)


def test_the_labelled_are_all_others_and_the_told_are_as_many_as_asked_for():
    trace = drawn()
    settings = LinkLearned.Settings(targets=4, history=3)
    case = Case.of(trace.release, {}, trace.original, trace.truth)
    known = {one.name: one.draw(case).frame for one in LinkLearned(settings).requests()}
    targets = set(known["targets"]["user"])
    assert len(targets) == 4
    assert set(known["labelled"]["user"]) == set(trace.release["user"]) - targets
    assert known["told"].group_by("user").len()["len"].to_list() == [3] * 4
    rows = trace.truth.join(known["told"], on="released_row", how="semi")
    assert not rows["fake"].any()
    nothing = KnownRecords(4).draw(case).frame
    assert nothing.height == 0


class Cheat(LinkLearned):
    """Separates people whose labels it was given, or one person twice."""

    name = "cheat"
    twice = False

    def guess(self, view):
        known = view.auxiliary["labelled"]
        if self.twice:
            known = view.release.join(view.auxiliary["targets"], on="user", how="semi").with_columns(
                fake=True
            )
        rows = known.filter(pl.col("user") == known["user"][0])
        cluster = rows["fake"].cast(pl.Int64).to_numpy()
        one = ClusteredTrace(rows["released_row"].to_numpy(), cluster, cluster, np.zeros(1, np.float32))
        return TraceClusters((one, one) if self.twice else (one,), 0)


@pytest.mark.parametrize(("twice", "what"), [(False, "not to attack"), (True, "twice")])
def test_who_answers_about_others_is_refused(twice, what, monkeypatch):
    monkeypatch.setattr(ATTACKS, "added", {"cheat": Cheat})
    monkeypatch.setattr(Cheat, "twice", twice)
    trace = drawn(people=8, searches=12)
    with pytest.raises(UsageError, match=what):
        run.attack(trace.release, {}, trace.original, trace.truth, ["cheat"])


def test_the_same_seed_gives_the_same_finding():
    a, b = (attacked(drawn(people=8), targets=2, functions=2) for _ in range(2))
    assert (a.success, a.structure, a.relative) == (b.success, b.structure, b.relative)


def test_rows_of_one_search_are_one_event_and_the_order_of_the_file_is_nothing():
    trace = drawn(people=8)
    again = trace.release.with_columns(released_row=pl.col("released_row") + trace.release.height)
    twice = pl.concat([trace.release, again])
    truth = pl.concat([trace.truth, trace.truth.with_columns(released_row=again["released_row"])])
    found = guessed(Trace(twice, trace.original, truth))
    once = guessed(trace)
    assert [one.row.tolist() for one in found.people] == [one.row.tolist() for one in once.people]


def one_person_more(trace: Trace, queries: list[str], fake: list[bool], **columns: Any) -> Trace:
    """Add somebody, and attack everybody that may be: half of the people, of whom she may be one."""
    rows = pl.DataFrame(
        {"user": ["odd"] * len(queries), "query": queries, "time": [START] * len(queries)}
    ).with_columns(rank=pl.lit(None, pl.Int64))
    real = trace.release.drop("released_row")
    everything = pl.concat([real, rows.select(real.columns)])
    return labelled(everything, np.array([*trace.truth["fake"], *fake]))


@pytest.mark.parametrize("columns", [["time"], ["rank"], ["time", "rank"]])
def test_without_times_or_clicks_it_still_answers(columns):
    """There is less to see, and nothing to see here at all."""
    trace = drawn(people=8)
    bare = Trace(trace.release.drop(columns), trace.original.drop(columns), trace.truth)
    finding = attacked(bare, targets=4, functions=2)
    assert finding.not_applicable is None
    assert 0.3 < finding.success < 0.7


def test_a_person_with_three_searches_and_one_with_a_single_query_are_attacked_too():
    trace = drawn(people=4, searches=12)
    odd = one_person_more(trace, ["same"] * 3 + ["other", "same", "same"], [False] * 3 + [True] * 3)
    sizes = [len(one.row) for one in guessed(odd, targets=9).people]
    assert len(sizes) == 2
    same = trace.release.with_columns(query=pl.lit("same"))
    finding = attacked(
        Trace(same, trace.original.with_columns(query=pl.lit("same")), trace.truth), functions=2
    )
    assert finding.not_applicable is None
    assert finding.low <= 0.5 <= finding.high


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t._replace(truth=t.truth.with_columns(fake=pl.lit(value=False))), "to learn from"),
        (
            lambda t: t._replace(release=t.release.with_columns(user=pl.lit("one"))),
            "nobody has four searches",
        ),
    ],
)
def test_what_cannot_be_attacked_is_said(change, reason):
    finding = attacked(change(drawn(people=4, searches=6)))
    assert reason in str(finding.not_applicable)
    assert finding.success is None


def test_labels_of_fakes_are_given_only_where_the_truth_has_them():
    trace = drawn(people=4, searches=6)
    case = Case.of(trace.release, {}, trace.original, trace.truth.drop("fake"))
    with pytest.raises(NotApplicable, match="does not say which searches are fake"):
        LabelledTraces(20).draw(case)


def test_who_has_no_fakes_is_left_out_of_the_numbers():
    trace = drawn(people=8, searches=12, seed=2)
    first = Targets(20).draw(Case.of(trace.release, {}, trace.original, trace.truth))
    honest = pl.col("original_user") == first.frame["user"][0]
    truth = trace.truth.with_columns(fake=pl.when(honest).then(pl.lit(value=False)).otherwise("fake"))
    finding = attacked(trace._replace(truth=truth), functions=2, seed=0)
    assert (finding.details["targets"], finding.details["left_out"]) == (4, 1)
    assert finding.structure["error"]["n"] == 3


def test_long_traces_are_cut_and_that_is_said():
    found = guessed(drawn(people=8), events=10)
    assert [len(one.row) for one in found.people] == [10] * 4
    assert found.details["cut_short"] == 4


def test_the_beginnings_end_with_the_last_real_search():
    rows = drawn(people=6, searches=30).release
    rows = rows.with_columns(fake=pl.Series(np.random.default_rng(0).random(rows.height) < 0.5))
    some = link_learned.beginnings(rows, real=5, people=3, seed=0)
    assert some["user"].n_unique() == 3
    for part in some.partition_by("user"):
        assert (~part["fake"]).sum() == 5
        assert not part["fake"][-1]


def test_the_own_cluster_has_the_larger_share_of_known_searches():
    cluster = np.array([0, 0, 0, 1, 1])
    assert link_learned.own_cluster(cluster, np.array([True, False, False, True, False])) == 1
    assert link_learned.own_cluster(cluster, np.zeros(5, bool)) is None


def test_no_name_and_no_query_is_in_the_finding(marked):
    text = str(marked.as_dict())
    assert "person" not in text
    assert "river" not in text
    assert not math.isnan(marked.success)

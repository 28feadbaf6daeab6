"""`link-learned` on a release: finds what can be seen, is at chance where nothing can, and gets no answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import querycloak as qc
from querycloak.attacks import run
from querycloak.attacks.auxiliary import Circle, already_known
from querycloak.attacks.base import AttackerView, Claim, RecordClaims
from querycloak.attacks.case import Case
from querycloak.attacks.finding import Finding
from querycloak.attacks.link_learned import LinkLearned
from querycloak.attacks.link_learned.released import LinkReleased
from querycloak.errors import UsageError
from querycloak.registry import ATTACKS
from tests.support.logs import made_up
from tests.unit.attacks.link_learned.releases import exchanged, released
from tests.unit.attacks.link_learned.traces import Trace

pytestmark = pytest.mark.learn


def attacked(trace: Trace, **settings: Any) -> Finding:
    chosen = {"targets": 10, "functions": 3, "seed": 1} | settings
    texts = {name: str(value) for name, value in chosen.items()}
    return run.attack(trace.release, {}, trace.original, trace.truth, ["link-learned"], texts)[0]


def case_of(trace: Trace) -> Case:
    return Case.of(trace.release, {}, trace.original, trace.truth)


def knowledge(case: Case, settings: Any) -> dict[str, pl.DataFrame]:
    requests = LinkReleased(settings).requests()
    return {one.name: one.draw(case).frame for one in requests}


def circle_of(case: Case, settings: Any) -> Circle:
    return LinkReleased(settings).requests()[0].circle(case)


def guessed(case: Case, **settings: Any) -> RecordClaims:
    """What the attack gives, before anybody scores it."""
    attack = LinkReleased(LinkLearned.Settings(**({"targets": 4, "functions": 2} | settings)))
    return attack.guess(AttackerView(case.release, {}, knowledge(case, attack.settings)))


@pytest.fixture(scope="module")
def marked() -> Finding:
    return attacked(exchanged(marked=True))


@pytest.fixture(scope="module")
def alike() -> Finding:
    return attacked(exchanged(people=60), targets=30)


def test_a_marker_that_one_relation_sees_is_found(marked):
    assert marked.success >= 0.99
    assert marked.details["area_under_curve"] >= 0.99
    assert marked.details["precision"] >= 0.99 > 0.2 > marked.details["precision_by_chance"]
    assert marked.structure["error"]["mean"] == pytest.approx(1 - marked.success)


def test_where_nothing_tells_whose_a_record_is_the_attack_is_at_chance(alike):
    """Each expected success is exactly 0.5. The interval is one of 95 %; the seed is fixed."""
    assert alike.low <= 0.5 <= alike.high
    assert alike.high - alike.low < 0.1
    assert alike.details["area_under_curve"] == pytest.approx(0.5, abs=0.05)
    assert alike.details["precision"] == pytest.approx(alike.details["precision_by_chance"], abs=0.05)


def test_labels_that_say_nothing_do_not_help_either():
    finding = attacked(exchanged(people=60), targets=30, labels="yes")
    assert finding.low <= 0.5 <= finding.high


def test_labels_that_stay_with_a_person_give_her_away():
    """Each person keeps her label, and some of her words are hers alone: one known search finds the rest."""
    log = exchanged().original
    number = log["user"].str.strip_prefix("person ").cast(pl.Int64).to_numpy()
    mixed = log.with_columns(query=pl.col("query") + pl.Series([f" {n % 7}" for n in range(log.height)]))
    trace = released(mixed.drop("row", "url"), number)
    without, with_labels = attacked(trace), attacked(trace, labels="yes")
    assert with_labels.success > 0.9 > without.success
    assert next(iter(with_labels.details["importances"])) == "S_Label"
    assert "S_Label" not in without.details["importances"]


def test_the_finding_says_what_was_known_and_what_is_left(marked):
    assert (marked.game, marked.unit, marked.bound, marked.relative) == ("linkage", "pair", None, None)
    details = marked.details
    assert (details["targets"], details["people"], details["learned_from"]) == (10, 30, 10)
    assert (details["known_searches"], details["records_to_find"]) == (12, 12)
    assert details["chance"] == 0.5
    assert marked.semantic["worst"]["mean"] == pytest.approx(0.0, abs=0.05)
    assert {"false_negatives", "false_positives"} <= marked.structure.keys()
    assert "person" not in str(marked.as_dict())
    assert "river" not in str(marked.as_dict())


@pytest.mark.parametrize("aggregate", ["mean", "majority"])
def test_other_ways_to_agree_find_the_marker_too(aggregate):
    assert attacked(exchanged(marked=True), aggregate=aggregate).success >= 0.98


def test_the_same_seed_gives_the_same_finding():
    a, b = (attacked(exchanged(people=12), targets=3, functions=2) for _ in range(2))
    assert (a.success, a.structure) == (b.success, b.structure)


def test_no_answer_about_a_target_reaches_the_attack():
    """What targets and strangers wrote, exchanged, changes no score; what the others wrote does."""
    case = case_of(exchanged(people=16))
    circle = circle_of(case, LinkLearned.Settings(targets=4, functions=2))
    before = guessed(case)
    for people, same in ((circle.others, True), (circle.targets, False)):
        kept = case.truth.user.is_in(people["user"].implode()).to_numpy()
        who = case.truth.user.to_numpy().copy()
        who[~kept] = np.random.default_rng(0).permutation(who[~kept])
        turned = replace(case, truth=replace(case.truth, user=pl.Series(who, dtype=pl.String)))
        after = guessed(turned)
        alike = before.row.size == after.row.size and all(
            np.array_equal(a.score, b.score) for a, b in zip(before.claims, after.claims, strict=True)
        )
        assert alike is same


def test_what_is_known_are_first_searches_and_nothing_about_targets_records():
    trace = exchanged(people=16)
    case, settings = case_of(trace), LinkLearned.Settings(targets=4, functions=2, history=5, candidates=20)
    known, circle = knowledge(case, settings), circle_of(case, settings)
    remembered = known["remembered"]
    assert remembered.group_by("user").len()["len"].to_list() == [5] * 4
    assert set(remembered["user"]) == {f"target {n}" for n in range(4)}
    for name, user in circle.people.items():
        hers = trace.original.filter(pl.col("user") == user).sort("time")["query"].head(5)
        assert remembered.filter(pl.col("user") == name)["query"].to_list() == hers.to_list()
    whose = trace.truth.select("released_row", "original_user", "original_row")
    theirs = known["theirs"].join(whose, on="released_row")
    assert set(theirs["original_user"]) == set(circle.others["user"])
    told = circle.known(circle.others)["row"]
    assert not theirs["original_row"].is_in(told.implode()).any()
    free = known["candidates"].join(whose, on="released_row")["original_user"]
    hers = free.is_in(circle.targets["user"].implode())
    assert (hers.sum(), (~hers).sum()) == (4 * 24, 20)
    assert not free.is_in(circle.others["user"].implode()).any()


def test_half_of_a_short_history_stays_unknown_and_few_people_are_shared_out():
    trace = exchanged(people=3, searches=4)
    circle = circle_of(case_of(trace), LinkLearned.Settings())
    assert (circle.targets.height, circle.others.height) == (1, 1)
    assert circle.known(circle.targets).height == 2


def test_known_searches_their_made_up_texts_and_all_until_the_last_are_left_out():
    day = [pl.datetime(2006, 3, n) for n in range(1, 6)]
    times = pl.select(pl.concat_list(day).explode()).to_series()
    known = pl.DataFrame({"row": [7], "query": ["a"], "time": times[1:2]})
    rows = pl.DataFrame({"query": ["b", "c", "a", "a", "d"], "time": times})
    origin = pl.Series([1, 2, 3, None, 7])
    assert already_known(known, rows, origin).tolist() == [True, True, False, True, True]
    bare = already_known(known.drop("time"), rows, origin)
    assert bare.tolist() == [False, False, False, True, True]


class Oracle(LinkReleased):
    """Calls hers what has her address, and can be told to misbehave."""

    name = "oracle"
    Settings = LinkLearned.Settings
    fault = ""

    def guess(self, view):
        rows = view.release.join(view.auxiliary["candidates"], on="released_row", how="semi")
        claims = []
        for part in view.auxiliary["remembered"].partition_by("user", maintain_order=True):
            hers = (rows["url"] == part["url"][0]).to_numpy()
            claims.append(Claim(part["user"][0], hers.astype(np.float64), hers))
        row = rows["released_row"].to_numpy()
        if self.fault == "rows":
            row = row + 1
        if self.fault == "twice":
            claims.append(claims[0])
        if self.fault == "short":
            claims[0] = Claim(claims[0].target, claims[0].score[1:], claims[0].claimed[1:])
        return RecordClaims(row, tuple(claims))


def asked(trace: Trace, monkeypatch: pytest.MonkeyPatch, fault: str = "") -> Finding:
    monkeypatch.setattr(ATTACKS, "added", {"oracle": Oracle})
    monkeypatch.setattr(Oracle, "fault", fault)
    return run.attack(trace.release, {}, trace.original, trace.truth, ["oracle"], {"targets": "4"})[0]


def test_who_is_always_right_has_all(monkeypatch):
    finding = asked(exchanged(marked=True), monkeypatch)
    assert (finding.success, finding.high) == (1.0, 1.0)
    assert finding.details["precision"] == 1.0
    assert finding.details["records_to_find"] == 24 - finding.details["known_searches"]
    assert finding.semantic["worst"]["mean"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("fault", "what"), [("rows", "not the candidates"), ("twice", "twice"), ("short", "each candidate")]
)
def test_claims_about_anything_else_are_refused(fault, what, monkeypatch):
    with pytest.raises(UsageError, match=what):
        asked(exchanged(people=12, marked=True), monkeypatch, fault)


@pytest.mark.parametrize("columns", [["time"], ["url", "rank"], ["time", "url", "rank"], ["user"]])
def test_without_times_clicks_or_labels_it_still_answers(columns):
    trace = exchanged(people=12)
    original = trace.original.drop(set(columns) - {"user"})
    finding = attacked(Trace(trace.release.drop(columns), original, trace.truth), functions=2)
    assert finding.not_applicable is None
    assert 0.3 < finding.success < 0.7


def test_searches_that_are_all_the_same_are_at_chance():
    trace = exchanged(people=12)
    same = [frame.with_columns(query=pl.lit("same")) for frame in (trace.release, trace.original)]
    finding = attacked(Trace(*same, trace.truth), functions=2)
    assert finding.low <= 0.5 <= finding.high


def test_three_people_are_enough():
    finding = attacked(exchanged(people=3), functions=2)
    assert finding.not_applicable is None
    assert (finding.details["targets"], finding.low, finding.high) == (1, 0.0, 1.0)


def short(trace: Trace, rows: int) -> Trace:
    log = trace.original.filter(pl.int_range(pl.len()).over("user") < rows).drop("row")
    return released(log, np.arange(log.height) % 3)


@pytest.mark.parametrize(
    ("change", "settings", "reason"),
    [
        (lambda t: short(t, 3), {}, "nobody has four searches"),
        (lambda t: t._replace(release=t.release.drop("query")), {}, "the release has no query"),
        (lambda t: t._replace(release=t.release.drop("user")), {"labels": "yes"}, "no labels"),
        (lambda t: exchanged(people=1), {}, "nobody has four searches"),
        (lambda t: exchanged(people=2), {}, "nothing of anybody else"),
        (lambda t: t._replace(release=t.release.head(1), truth=t.truth.head(1)), {}, "records to learn from"),
        (lambda t: t._replace(release=t.release.head(0), truth=t.truth.head(0)), {}, "is empty"),
    ],
)
def test_what_cannot_be_attacked_is_said(change, settings, reason):
    finding = attacked(change(exchanged(people=4, searches=6)), functions=2, **settings)
    assert reason in str(finding.not_applicable)
    assert finding.success is None


def shared(people: int = 12, k: int = 2) -> Trace:
    """Made-up histories: k people have the same records, under a label each; a group has a site."""
    trace = exchanged(people=people, searches=8)
    group = pl.col("user").str.strip_prefix("person ").cast(pl.Int64) // k
    site = pl.format("http://www.site{}.example/", group)
    log = trace.original.with_columns(url=site)
    nth = pl.int_range(pl.len()).over("user")
    made = log.with_columns(
        query=pl.format("made up {} {}", group, nth), time=pl.col("time").max() + pl.duration(hours=nth)
    )
    made = made.drop("row").with_row_index("released_row").cast({"released_row": pl.Int64})
    truth = made.select(
        "released_row",
        original_row=pl.lit(None, pl.Int64),
        original_user="user",
        released_after="released_row",
    )
    return Trace(made, log, truth)


def test_the_same_records_under_other_labels_of_her_group_are_not_errors(monkeypatch):
    """Who calls a whole group's records hers is right: nothing could tell one label of it from another."""
    finding = asked(shared(), monkeypatch)
    assert finding.success == 1.0
    assert finding.details["made_up"]
    assert finding.details["records_to_find"] == 8


def test_a_microaggregation_is_attacked():
    log = made_up(users=40, seed=3)
    release = qc.protect(log, "microagg-plain", k=4, seed=1)
    finding = qc.attack(release, log, "link-learned", seed=1, targets=8, functions=2)[0]
    assert finding.details["made_up"]
    assert 0.3 < finding.success <= 1.0

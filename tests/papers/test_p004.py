"""The study of paper 004 goes on where it was stopped, and its page follows from its lines."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import polars as pl
import pytest
from papers.common.render import page
from papers.common.results import read_lines
from papers.common.study import sweep
from papers.common.verdicts import Claim, Verdict, counted
from papers.p004.claims import TABLE_4, TABLE_5, TABLES, all_claims, ours, rank_correlation
from papers.p004.figures import CAPTIONS
from papers.p004.results import METHODS, PAPERS, Mean, Results
from papers.p004.run import Plan, Study
from papers.p004.workload import SIZES, TENTHS, Setup, Target, Traces, active

from querycloak.attacks.link_learned.relations_kernel import NAMES
from tests.papers.pages import written
from tests.support.logs import made_up

Lines = list[dict[str, Any]]
ABOUT = {"users": 20, "functions": 2, "singles": 3, "seed": 1, "searches": 9000, "mean": 450.0,
         "deviation": 20.0, "least": 400, "most": 600, "with_topic": 0.99}  # fmt: skip
FIRST = {"name": None, "about": ABOUT, "machine": {"cores": 2, "processor": "any"}}
#: By how much each way to cover protects, in the made-up lines.
LEVEL = {"tmn": 0.15, "usr": 0.05, "hybrid": 0.3, "shadow": 0.35}


def attacked(method: str, person: int) -> dict[str, Any]:
    """Make up the line of a person for whom all is as the paper says."""
    low, more = LEVEL[method], person / 1000
    relative = 0.1 + more * 10 if method == "tmn" else 0.08 + more * 4
    mean = 0.3 + more * 10
    if method == "tmn":
        mean += 0.05 if person >= 18 else -0.1
    return {
        "name": f"attack {method} {person} 0", "part": "attack", "method": method, "person": person,
        "draw": 0, "real": 400, "fakes": 400, "pairs": 319_600, "structure": [low + more, low + 2 * more],
        "relative": [relative, relative], "worst": low + more, "mean": mean, "hours": 0.1, "area": 0.6,
        "cpu": {"read": 0.1, "score": 1.0, "cut": 1.0},
    }  # fmt: skip


def rest(method: str) -> Lines:
    """Make up the other lines of one way to cover."""
    paper = TABLE_4 if method == "usr" else TABLE_5
    helped = dict.fromkeys(NAMES, 0.0) | {name: float(value) for name, value in paper.items()}
    found: Lines = [
        {"name": f"learned {method} {tenth}", "part": "learned", "method": method, "tenth": tenth,
         "importances": helped, "cpu": {"learn": 2.0}}
        for tenth in range(2)
    ]  # fmt: skip
    found.append({"name": f"made {method} 0", "part": "made", "method": method, "draw": 0,
                  "fingerprint": "x", "real": [400, 500], "fakes": [400, 500]})  # fmt: skip
    found.append({"name": f"whole {method} 0 0", "part": "whole", "method": method, "worst": [0.1, 0.3]})
    for person in range(10 if method in PAPERS else 0):
        wins = person % 5 < 3
        found += [
            {"name": f"alone {method} {person} 0", "part": "alone", "method": method, "person": person,
             "pairs": 319_600, "each": [0.3, *[0.3 if wins else 0.1] * 2], "median": 0.2,
             "mean": 0.22 + person / 1000, "majority": 0.21,
             "cpu": {"relate": 0.5, "functions": 0.3, "cuts": 0.4}},
            {"name": f"sizes {method} {person} 0", "part": "sizes", "method": method, "person": person,
             "relative": {str(size): [0.2 + person / 100, 0.1] for size in SIZES}, "cpu": {"all": 3.0}},
        ]  # fmt: skip
    return found


@pytest.fixture
def lines() -> Lines:
    """Make up a study in which the paper is right about all."""
    people = [attacked(method, person) for method in METHODS for person in range(20)]
    return copy.deepcopy([FIRST, *people, *(line for method in METHODS for line in rest(method))])


def changed(lines: Lines, part: str, method: str, key: str, value: Any) -> Lines:
    """Give the same lines with another value in one part."""
    other = copy.deepcopy(lines)
    for line in other:
        if line.get("part") == part and line["method"] == method:
            line[key] = value
    return other


def statement(lines: Lines, where: str, words: str) -> Claim:
    """Find the first statement with these words."""
    return next(one for one in TABLES[where](Results.of(lines)) if words in one.says)


def test_if_all_is_as_the_paper_says_all_holds(lines):
    counts = counted(all_claims(Results.of(lines)))
    assert counts[Verdict.HOLDS] == counts.total() > 20
    assert [one.judged.on_page for one in ours(Results.of(lines))] == ["holds"] * 4


HALF = dict.fromkeys(NAMES, 0.0) | {"S_QueryTerms": 100.0, "D_Time": 90.0}


@pytest.mark.parametrize(
    ("where", "words", "part", "method", "key", "value"),
    [
        ("Table 4", "is first", "learned", "usr", "importances", HALF),
        ("Table 4", "first four", "learned", "usr", "importances", HALF),
        ("Table 4", "order of all", "learned", "usr", "importances", HALF),
        ("Table 4", "by far most", "learned", "usr", "importances", HALF),
        ("Table 5", "is first", "learned", "tmn", "importances", HALF),
        ("Table 5", "more telling", "learned", "tmn", "importances", HALF),
        ("Table 5", "less telling", "learned", "usr", "importances", HALF),
        ("Section 5.1: many functions together", "two thirds", "alone", "tmn", "median", 0.5),
        ("Section 5.1: many functions together", "than the mean", "alone", "tmn", "mean", 0.0),
        ("Figure 2: structure", "TMN protects", "attack", "tmn", "structure", [0.0, 0.0]),
        ("Figure 2: structure", "false negatives", "attack", "tmn", "structure", [0.0, 0.9]),
        ("Figure 2: structure", "false positives", "attack", "tmn", "structure", [0.9, 0.0]),
        ("Figure 2: structure", "across all", "attack", "tmn", "structure", [0.075, 0.075]),
        ("Figure 2: structure", "relative privacy", "attack", "tmn", "relative", [0.0, 0.0]),
        ("Figure 2: structure", "the gap", "attack", "tmn", "relative", [0.5, 0.5]),
        ("Figure 3: topics", "worst case", "attack", "tmn", "worst", 0.0),
        ("Figure 3: topics", "about 90 %", "attack", "tmn", "mean", 0.0),
        ("Figure 3: topics", "on average", "attack", "usr", "mean", 0.0),
        ("Figure 3: topics", "USR: most", "attack", "usr", "worst", 0.6),
        ("Section 5.2: a hybrid", "than USR", "attack", "hybrid", "structure", [0.0, 0.0]),
    ],
)
def test_a_verdict_turns_when_its_figures_do(lines, where, words, part, method, key, value):
    assert statement(lines, where, words).judged.verdict is Verdict.HOLDS
    other = statement(changed(lines, part, method, key, value), where, words)
    assert other.judged.verdict not in (Verdict.HOLDS, Verdict.MISSING)


def test_privacy_that_depends_on_whom_one_learns_from_is_seen(lines):
    for line in lines:
        if line.get("part") == "sizes" and line["method"] == "usr":
            line["relative"]["20"] = [0.6, 0.1]
    assert statement(lines, "Figure 4: people learned from", "USR").judged.verdict is Verdict.PARTLY
    assert statement(lines, "Figure 4: people learned from", "TMN").judged.verdict is Verdict.HOLDS


def test_a_difference_within_its_interval_cannot_be_told(lines):
    for line in lines:
        if line.get("part") == "attack" and line["method"] == "shadow":
            line["worst"] = LEVEL["tmn"] + (0.2 if line["person"] % 2 else -0.19)
    verdicts = {one.says: one.judged.on_page for one in ours(Results.of(lines))}
    (found,) = (verdict for says, verdict in verdicts.items() if "`tmn` in the worst" in says)
    assert found == "cannot be told"
    assert "does not do all it aims at**: 3 of 4" in page_of(lines)


def test_differences_are_those_of_the_same_people(lines):
    kept = [
        one for one in lines if one.get("part") != "attack" or one["method"] != "usr" or one["person"] < 3
    ]
    found = Results.of(kept).apart("tmn", "usr", "worst")
    assert found == pytest.approx(Mean(0.1, 0.1, 0.1))


def test_draws_of_one_person_are_averaged_and_count_as_one(lines):
    again = [
        {**one, "draw": 1, "name": one["name"][:-1] + "1", "worst": one["worst"] + 0.2}
        for one in lines
        if one.get("part") == "attack" and one["method"] == "tmn"
    ]
    one, two = Results.of(lines), Results.of(lines + again)
    assert two.attacked() == one.attacked()
    assert two.average("tmn", "worst") == pytest.approx(tuple(v + 0.1 for v in one.average("tmn", "worst")))


def test_an_interval_of_a_mean_worked_by_hand():
    """Of 1, 2, 3: deviation 1, Student's point for two degrees 4.303."""
    found = Mean.of(np.array([1.0, 2.0, 3.0]))
    assert found == pytest.approx((2.0, 2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), abs=0.01)
    assert Mean.of(np.array([1.0])) is None


def test_ranks_are_compared_with_equals_in_the_middle():
    assert rank_correlation([3, 2, 1], [30, 20, 10]) == pytest.approx(1)
    assert rank_correlation([3, 2, 1], [10, 20, 30]) == pytest.approx(-1)
    assert rank_correlation([3, 2, 1], [5, 5, 5]) == 0
    assert rank_correlation([4, 3, 2, 1], [9, 9, 1, 1]) == pytest.approx(0.894, abs=0.001)


def test_the_hours_of_the_full_study_follow_from_the_seconds(lines):
    """40 units of 319,600 pairs, 79,800 of them hers; a unit takes 1 s to score, half of it to relate."""
    pair, own = 1 / 319_600, 79_800
    scored = (own + 20 * (319_600 - own)) * (0.5 * pair + 60 * 0.25 * pair)
    learned = 4 * 2.0 * 30
    expected = (40 * (scored + 20 * 1.1) + learned) / 3600
    assert Results.of(lines).full_hours() == pytest.approx(expected)
    assert Results.of([FIRST]).full_hours() is None


def page_of(lines: Lines) -> str:
    """Write the page in one line, as far as blanks go."""
    return " ".join(page("p004", Results.of(lines)).split())


@pytest.mark.parametrize(
    ("part", "method", "key", "value", "before", "after"),
    [
        ("attack", "tmn", "worst", 0.0, "as the paper says**", "not what we see throughout**"),
        ("attack", "shadow", "worst", 0.0, "does what it aims at**", "2 of 4 aims"),
        ("attack", "tmn", "area", 0.99, "about as much as the scores", "for `tmn`: a cut"),
        ("learned", "tmn", "importances", dict.fromkeys(NAMES, 0.0) | {"S_SpellingError1": 1.0},
         "tell less here. |", "never mistyped"),
    ],
)  # fmt: skip
def test_the_words_of_the_page_turn_with_the_numbers(lines, part, method, key, value, before, after):
    assert before in page_of(lines)
    other = page_of(changed(lines, part, method, key, value))
    assert before not in other
    assert after in other


@pytest.mark.parametrize("kept", ["none", "half", "all"])
def test_the_page_is_made_of_whatever_was_measured(lines, kept, tmp_path):
    some = {"none": lines[:1], "half": lines[:1] + lines[1::3], "all": lines}[kept]
    page = written("p004", Results.of(some), tmp_path, len(CAPTIONS))
    assert kept == "half" or ("not measured yet" in page) == (kept == "none")


def test_every_unit_has_a_name_of_its_own():
    found = list(Study(users=50, targets=40, draws=3, few=2).units())
    assert len({plan.name for plan in found}) == len(found) == 40 * 4 * 3 + 4 + 2 * 2 * 2
    assert {plan.person % TENTHS for plan in found if plan.part in ("alone", "sizes")} == {0}
    fewer = Study(users=50, targets=20, draws=1, few=1).units()
    assert {plan.name for plan in fewer} <= {plan.name for plan in found}


class Pretended(Study):
    """A study whose units cost nothing, and that can be stopped."""

    stops_after = 10**9
    fingerprint = "same"
    measured = 0

    def about(self) -> dict[str, Any]:
        return copy.deepcopy(ABOUT)

    def measure(self, plan: Plan) -> dict[str, Any]:
        """Return a number that depends on the unit alone."""
        if plan.part == "made":
            return {"part": "made", "method": plan.method, "fingerprint": self.fingerprint}
        if plan.part not in ("made", "learned"):
            if self.measured >= self.stops_after:
                raise KeyboardInterrupt
            self.measured += 1
        return {"part": plan.part, "method": plan.method, "value": len(plan.name)}

    def verify(self, plan: Plan, line: dict[str, Any]) -> None:
        if plan.part == "made" and line["fingerprint"] != self.fingerprint:
            raise SystemExit("not those with which the file was begun")


def pretended(**settings: int) -> Pretended:
    return Pretended(users=20, functions=2, singles=3, seed=1, **settings)


def numbered(path: Any) -> dict[str, Any]:
    return {line.get("name"): line.get("value") for line in read_lines(path)}


@pytest.mark.parametrize("cut_off", [False, True])
def test_a_run_that_was_stopped_continues(tmp_path, cut_off):
    """Also where its last line was being written."""
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    extent = {"targets": 3, "draws": 2, "few": 1}
    sweep(pretended(**extent), whole, report=lambda _: None)
    stopped = pretended(**extent)
    stopped.stops_after = 7
    with pytest.raises(KeyboardInterrupt):
        sweep(stopped, parts, report=lambda _: None)
    if cut_off:
        parts.write_text(parts.read_text()[:-9])
    before = len(read_lines(parts))
    reports: list[str] = []
    sweep(pretended(**extent), parts, report=reports.append)
    assert before + len(reports) + 1 == len(read_lines(parts)) == len(read_lines(whole))
    assert numbered(parts) == numbered(whole)
    sweep(pretended(**extent), parts, report=reports.append)
    assert before + len(reports) + 1 == len(read_lines(parts))


def test_more_draws_can_be_added_later(tmp_path):
    path = tmp_path / "lines.jsonl"
    sweep(pretended(targets=2, draws=1, few=0), path, report=lambda _: None)
    reports: list[str] = []
    sweep(pretended(targets=2, draws=3, few=0), path, report=reports.append)
    assert sum(": attack" in one for one in reports) == 2 * 4 * 2
    assert sum(": made" in one for one in reports) == 4 * 2
    assert reports[1].startswith("2 of 24: attack tmn 0 1")


def test_only_some_plans_can_be_measured(tmp_path):
    path = tmp_path / "lines.jsonl"
    sweep(pretended(targets=1, few=0), path, "whole", report=lambda _: None)
    assert {line["part"] for line in read_lines(path)[1:]} == {"whole", "time"}


def test_lines_of_two_studies_are_not_put_together(tmp_path):
    path = tmp_path / "lines.jsonl"
    sweep(pretended(targets=1, few=0), path, report=lambda _: None)
    other = Pretended(users=20, functions=9, singles=3, seed=1)
    with pytest.raises(SystemExit, match="another functions"):
        sweep(other, path, report=lambda _: None)
    changed = pretended(targets=2, few=0)
    changed.fingerprint = "other"
    with pytest.raises(SystemExit, match="not those with which"):
        sweep(changed, path, report=lambda _: None)


def test_fakes_that_are_drawn_otherwise_are_refused(study):
    made = Study(users=12, functions=2, singles=3, seed=1)
    made.__dict__["traces"] = study
    plan = Plan("made", "tmn", draw=0)
    made.verify(plan, made.measure(plan))
    with pytest.raises(SystemExit, match="not those with which"):
        made.verify(plan, {"fingerprint": "x"})


@pytest.fixture(scope="module")
def study() -> Traces:
    """Return the traces of twelve people with few searches."""
    frame = made_up(users=60, seed=3).frame
    busy = frame.group_by("user").len().sort("len", "user", descending=True)["user"].head(12).sort()
    made = Traces(Setup(users=12, functions=2, singles=3, seed=1))
    few = frame.filter(pl.col("user").is_in(busy.implode())).group_by("user", maintain_order=True).head(40)
    made.__dict__["log"] = few
    return made


@pytest.mark.learn
@pytest.mark.parametrize("method", METHODS)
def test_pairs_scored_once_give_the_same_numbers_in_every_draw(study, method):
    kept = Target(study, method, 3)
    first, second = kept.attack(0), kept.attack(1)
    alone = Target(study, method, 3).attack(1)
    assert second["pairs"] < alone["pairs"] == first["pairs"]
    for found in (first, second, alone):
        found.pop("cpu")
        found.pop("pairs")
    assert second == alone
    assert second != first


@pytest.mark.learn
def test_an_attacker_learns_from_others_only_and_not_from_the_fakes_he_attacks(study):
    assert study.people[3] not in study.others(study.tenth(3))
    assert len(study.others(3)) + len([n for n in range(12) if study.tenth(n) == 3]) == 12
    assert study.fingerprint("tmn", -1) != study.fingerprint("tmn", 0)


@pytest.mark.learn
def test_functions_alone_and_together_are_scored_alike(study):
    assert 0 < Target(study, "usr", 0).unsorted() < 1
    found = Target(study, "usr", 0).alone()
    assert len(found["each"]) == 3
    assert all(0 <= found[way] <= 1 for way in ("median", "mean", "majority"))
    sized = list(study.sized("usr", 0))
    assert [size for size, _ in sized] == [10]  # no more others there are
    assert set(Target(study, "usr", 0).sizes(sized)["relative"]) == {"10"}


def test_active_people_are_active(monkeypatch):
    monkeypatch.setattr("papers.p004.workload.ACTIVE", (30, 60))
    monkeypatch.setattr("papers.p004.workload.GENERATED_FOR_ONE", 10)
    log = active(8, 5)
    many = log.select("user", "query", "time").unique().group_by("user").len()["len"]
    assert many.len() == 8
    assert many.is_between(30, 60).all()
    assert log.equals(active(8, 5))
    monkeypatch.setattr("papers.p004.workload.ACTIVE", (10**6, 10**7))
    with pytest.raises(ValueError, match="only 0 active"):
        active(8, 5)

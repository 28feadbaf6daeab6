"""What the page on thesis 003 says follows from its lines, also when many of them are missing."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from papers.common.render import page
from papers.common.verdicts import Claim, Verdict, counted
from papers.p003 import figures, run
from papers.p003.claims import FIGURES, all_claims
from papers.p003.figures import AGGREGATIONS
from papers.p003.page import CAPTIONS
from papers.p003.results import Results, by_lot

from querycloak.measures import jaccard_index, rand_index
from tests.papers.pages import written

ABOUT = {"users": 1000, "rows": 50_000, "least": 9, "seed": 5, "once": 0.4, "words": 0.7}
FIRST = {
    "about": ABOUT | {"levels": {str(level): 1 / level for level in range(1, 14)}},
    "machine": {"cores": 2, "processor": "any"},
}
Lines = list[dict[str, Any]]


def line(kind: str, at: int, **other: Any) -> dict[str, Any]:
    """Make up what one release of a method that exposes exactly 100/k would give."""
    usual = {
        "profile_exposure.queries_mean": 100 / at,
        "profile_exposure.categories_mean": 90 / at,
        "information_loss_ratio.queries_mean": 10 + 40 * (at - 3) / 32,
        "information_loss_ratio.queries_median": 10.0,
        "record_linkage.queries": 100 / at,
        "record_linkage.categories": 50 / at,
        "partition_loss.loss_80": 60.0 + at,
        "partition_loss.loss_80_by_chance": 80.0,
        **{f"top_preserved.{what}_10": 1.0 for what in ("queries", "words", "categories")},
        **{f"semantic_remain.level_{level}": min(1.0, 1.5 / at) for level in range(1, 6)},
    }
    named = {"name": f"{kind} {at}", "kind": kind, "at": at, "settings": {"K": 6}, "rows": 1.0}
    left = {"queries_left": 0.5, "people_left": 1.0, "linked": 0.9 / at, "cpu_seconds": 1.0}
    tops = {"top_queries": [[4.0, 4.1]] * 10, "top_words": [[20.0, 19.0]] * 10}
    return named | left | usual | tops | other


def empty(kind: str, at: int) -> dict[str, Any]:
    """Make up a release in which nothing is left: it has no measures."""
    full = line(kind, at, rows=0.0, queries_left=0.0, people_left=0.0, linked=None)
    return {name: value for name, value in full.items() if "." not in name}


def mining(last: float) -> dict[str, Any]:
    """Make up clusterings whose indices end so high."""
    index = {"2": 0.5, "500": last}
    own = {"rand": {"10": 0.7}, "jaccard": {"10": 0.2}}
    return {
        "name": "mining",
        "lines": [{"k": k, "rand": index, "jaccard": index, "own": own} for k in (1, 3, 50)],
    }


@pytest.fixture
def lines() -> Lines:
    """Make up a run in which the thesis is right about the aggregations."""
    loss = {
        "semantic": 0.0,
        "topic": 1.0,
        "topic five": 1.0,
        "syntactic": 2.0,
        "plain": 3.0,
    }
    found: Lines = [FIRST]
    for kind, more in loss.items():
        for k in (*range(2, 11), 35, 50):
            other = {"partition_loss.loss_80": 50.0 + k + more, "record_linkage.categories": 50 / k + more}
            found.append(line(kind, k, **other, cpu_seconds=3.0 if kind == "topic five" else 1.0))
    found += [empty("threshold", d) for d in (1, 5, 20)]
    found += [line("graph", k, people_left=0.9) for k in (2, 5, 30)]
    return [*found, mining(0.97), {"name": None, "part": "time", "plans": 1, "seconds": 60.0}]


def claim(lines: Lines, figure: str, words: str) -> Claim:
    """Find the one statement on a figure that has these words."""
    (found,) = (one for one in FIGURES[figure](Results.of(lines)) if words in one.says)
    return found


def changed(lines: Lines, kind: str, column: str, value: Any) -> Lines:
    """Give the same lines with another number for one method."""
    other = copy.deepcopy(lines)
    for one in other:
        if one.get("kind") == kind:
            one[column] = value
    return other


@pytest.mark.parametrize(
    ("figure", "words", "kind", "column", "value"),
    [
        ("5.3", "very close to 100/k", "syntactic", "profile_exposure.queries_mean", 90.0),
        ("5.3", "at most 40 %", "syntactic", "profile_exposure.queries_mean", 41.0),
        ("5.4", "at k = 35", "syntactic", "information_loss_ratio.queries_mean", 20.0),
        ("5.7", "stay the commonest", "syntactic", "top_preserved.queries_10", 0.8),
        ("5.8", "about as often", "syntactic", "top_words", [[20.0, 3.0]] * 10),
        ("5.12", "three times", "topic five", "cpu_seconds", 1.0),
        ("5.13", "semantic loses least", "semantic", "partition_loss.loss_80", 99.0),
        ("5.13", "plain is the worst", "plain", "partition_loss.loss_80", 1.0),
        ("5.13", "syntactic loses less", "syntactic", "partition_loss.loss_80", 99.0),
        ("5.13", "at Kp = 30", "graph", "people_left", 0.2),
        ("5.14", "Korolova keeps less", "threshold", "top_preserved.queries_10", 1.1),
        ("5.17", "linked least", "semantic", "record_linkage.categories", 60.0),
        ("5.18", "Korolova exposes least", "threshold", "profile_exposure.queries_mean", 99.0),
        ("5.19", "lower than by queries", "plain", "profile_exposure.categories_mean", 100.0),
    ],
)
def test_a_verdict_turns_when_its_figures_do(lines, figure, words, kind, column, value):
    assert claim(lines, figure, words).judged.on_page == "holds"
    other = claim(changed(lines, kind, column, value), figure, words)
    assert other.judged.verdict is not Verdict.HOLDS
    assert other.judged.measured


def test_five_categories_may_gain_something_but_not_ten_points(lines):
    for gain, verdict in ((0.1, "holds"), (0.02, "in part (1 of 2)"), (-0.1, "**does not hold**")):
        other = changed(lines, "topic five", "semantic_remain.level_5", 0.3 + gain)
        assert claim(other, "5.11", "about 10 points").judged.on_page == verdict


def test_indices_must_end_near_one(lines):
    assert claim(lines, "5.5", "Rand").judged.on_page == "holds"
    other = [mining(0.6) if one.get("name") == "mining" else one for one in lines]
    assert claim(other, "5.5", "Rand").judged.on_page == "**does not hold**"


def test_an_empty_release_exposes_and_keeps_nothing_but_has_no_information_loss(lines):
    results = Results.of(lines)
    for column in (
        "profile_exposure.queries_mean",
        "record_linkage.queries",
        "linked",
        "top_preserved.queries_10",
    ):
        assert results.value("threshold", 1, column) == 0.0
    assert results.value("threshold", 1, "partition_loss.loss_80") is None
    assert results.value("semantic", 99, "linked") is None


@pytest.mark.parametrize("kept", ["none", "half", "all"])
def test_the_page_is_made_of_whatever_was_measured(lines, kept, tmp_path):
    some = {"none": lines[:1], "half": lines[:1] + lines[1::2], "all": lines}[kept]
    page = written("p003", Results.of(some), tmp_path, len(CAPTIONS))
    assert len(FIGURES) == len(CAPTIONS)
    assert page.count("not measured yet") == 0 if kept == "all" else "not measured yet" in page


def test_the_page_waits_for_methods_that_are_not_there_yet(lines):
    without = [one for one in lines if one.get("kind") != "semantic"]
    text = page("p003", Results.of(without))
    assert "Not measured yet: semantic." in text
    assert "That the semantic method loses least is not measured yet**." in text
    assert not claim(without, "5.13", "semantic loses least").judged.measured
    assert claim(without, "5.13", "syntactic loses less").judged.on_page == "holds"


def test_the_opening_counts_the_verdicts(lines):
    counts = counted(all_claims(Results.of(lines)))
    every = [one for claims in FIGURES.values() for one in claims(Results.of(lines))]
    assert counts.total() == len(every)
    assert counts[Verdict.HOLDS] == sum(0 < one.judged.checks == one.judged.right for one in every)
    text = " ".join(page("p003", Results.of(lines)).split())
    assert f"{counts[Verdict.HOLDS]} hold on our log, {counts[Verdict.PARTLY]} hold in part" in text


def test_lot_gives_what_partitions_by_lot_give():
    chance, people, groups = np.random.default_rng(3), 600, 12
    equal = np.repeat(np.arange(groups), people // groups)
    pairs = [(chance.permutation(equal).tolist(), equal.tolist()) for _ in range(40)]
    for name, index in (("rand", rand_index), ("jaccard", jaccard_index)):
        found = np.mean([index(*pair) for pair in pairs])
        assert found == pytest.approx(by_lot(name, groups, people), rel=0.01)


def test_every_method_that_is_measured_has_a_look_and_no_plan_is_there_twice():
    names = [plan.name for plan in run.plans(quick=False)]
    assert len(set(names)) == len(names)
    assert list(AGGREGATIONS) == list(run.GROUPING)
    kinds = {plan.kind for plan in run.plans(quick=False)} - set(AGGREGATIONS)
    assert set(figures.REMOVALS) <= kinds

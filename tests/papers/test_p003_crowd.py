"""What the page on the crowd says follows from its lines, also when many of them are missing."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from papers.common.render import page
from papers.common.verdicts import Claim, Verdict, counted
from papers.p003_crowd.claims import TABLES, WAYS, all_claims, sized
from papers.p003_crowd.figures import CAPTIONS
from papers.p003_crowd.page import CUT
from papers.p003_crowd.results import AVERAGES, DEVIATIONS, EXPOSED, POSITIONS, PUNISHED, TENTHS, Results
from papers.p003_crowd.run import BEST, FLAT, READINGS, Plan, averaged, equal_shares, plans, spelled

from querycloak.clients.crowd import attackers, network, simulator
from querycloak.clients.crowd.simulator import Behaviour
from tests.papers.pages import written

FIRST = {"about": {"users": 1000, "rows": 42_000, "seed": 5}, "machine": {"cores": 2, "processor": "any"}}
Lines = list[dict[str, Any]]


def said(plan: Plan) -> dict[str, Any]:
    """Make up the line of a crowd in which all is as the thesis says, and the engine finds most authors."""
    average, variance = POSITIONS.get(plan.at, POSITIONS[spelled(BEST)])
    places = {
        str(k): {"average": AVERAGES[k - 1], "deviation": DEVIATIONS[k - 1], "people": 9}
        for k in range(1, 11)
    }
    places["10"] = {"average": average, "deviation": variance**0.5, "people": 9}
    honest, selfish = PUNISHED.get(plan.at, (3.0, 100.0)) if plan.part == "penalty" else (3.0, 100.0)
    totals = {limit: sum(counts) / 10 for limit, counts in EXPOSED.items()}
    if plan.part == "selfish":
        totals["60"] += 10 * plan.at
    exposed = {
        "people": 938,
        "honest": totals if plan.part == "selfish" else {"60": honest},
        "selfish": {"60": selfish},
        "by_friends": {
            str(k): {limit: counts[k - 1] for limit, counts in EXPOSED.items()} for k in range(1, 11)
        },
        "tenths": {str(10 * (place + 1)): share for place, share in enumerate(TENTHS)},
    }
    own = {"selfish": {str(k): 0.8 for k in range(1, 11)}, "heaviest tenth": 0.6, "others": 0.2}
    found = {"success": 0.9, "n": 500}
    line = {
        "name": plan.name, "part": plan.part, "at": plan.at, "hops": 3.59, "response_ms": 4205.4,
        "position": places, "first": places, "exposed": exposed, "own": own,
        "equal": {"author": 1.0, "friends": 1.01, "their friends": 0.4},
        "engine": {"linked": found, "linked_with_network": found, "single": found}, "exact": found,
        "predecessor": {"seen": 0.1, "success": found, "of_all": found, "by_friends": {"1": found}},
    }  # fmt: skip
    copied: dict[str, Any] = json.loads(json.dumps(line))  # so that no part is shared
    return copied


@pytest.fixture
def lines() -> Lines:
    """Make up a run in which the thesis is right about all."""
    time = {"name": None, "part": "time", "plans": 1, "seconds": 60.0}
    return [copy.deepcopy(FIRST), *(said(plan) for plan in plans(quick=False)), time]


def claim(lines: Lines, where: str, words: str, way: str = "no back") -> Claim:
    """Find the one statement of a table that has these words."""
    (found,) = (one for one in TABLES[where](Results.of(lines), way) if words in one.says)
    return found


def changed(lines: Lines, part: str, path: tuple[str, ...], value: Any) -> Lines:
    """Give the same lines with another number in one part."""
    other = copy.deepcopy(lines)
    for one in other:
        if one.get("part") == part:
            inner = one
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
    return other


def page_of(lines: Lines) -> str:
    """Write the page in one line, as far as blanks go."""
    return " ".join(page("p003_crowd", Results.of(lines)).split())


@pytest.mark.parametrize(
    ("where", "words", "part", "path", "value"),
    [
        ("Table 4.1", "nine average", "cut", ("position", "10", "average"), 8.0),
        ("Table 4.1", "quarter), equals half", "cut", ("position", "10", "deviation"), 1.0),
        ("Table 4.1", "quarter), equals after", "cut", ("first", "10", "deviation"), 1.0),
        ("Table 4.1", "highest variance, equals after", "cut", ("first", "10", "deviation"), 3.0),
        ("Table 4.1", "than none, equals half", "cut", ("position", "10", "deviation"), 3.0),
        ("Figure 4.1, Table 4.5", "near the ideal", "cut", ("position", "3", "average"), 2.3),
        ("Figure 4.1, Table 4.5", "ten deviations (", "cut", ("position", "3", "deviation"), 0.8),
        ("Figure 4.1, Table 4.5", "previous", "cut", ("position", "3", "deviation"), 0.7),
        ("Table 4.2", "fewer friends", "selfish", ("exposed", "by_friends", "7", "60"), 40),
        ("Table 4.2", "above 60 %", "selfish", ("exposed", "honest", "60"), 19.0),
        ("Table 4.3", "nearly 90 %", "selfish", ("exposed", "tenths", "10"), 35.0),
        ("Table 4.3", "not exposed, synthetic", "cut", ("exposed", "honest", "60"), 5.2),
        ("Table 4.4", "all selfish", "penalty", ("exposed", "selfish", "60"), 90.0),
        ("Table 4.4", "few are", "penalty", ("exposed", "selfish", "60"), 100.0),
        ("Table 4.4", "eight shares", "penalty", ("exposed", "honest", "60"), 13.0),
        ("Table 4.4", "with ζ = 0.1", "penalty", ("exposed", "honest", "60"), 2.4),
        ("Figure 4.2", "more selfish", "selfish", ("exposed", "honest", "60"), 4.0),
        ("Figure 4.3", "histories", "selfish", ("own", "selfish", "9"), 0.1),
        ("4.7.3, usability", "hops", "hops", ("hops",), 2.2),
        ("4.7.3, usability", "ms", "hops", ("response_ms",), 2700.0),
    ],
)  # fmt: skip
def test_a_verdict_turns_when_its_figures_do(lines, where, words, part, path, value):
    assert claim(lines, where, words).judged.verdict is Verdict.HOLDS
    other = claim(changed(lines, part, path, value), where, words)
    assert other.judged.verdict is not Verdict.HOLDS
    assert other.judged.measured


def test_if_all_is_as_the_thesis_says_all_holds(lines):
    results = Results.of(lines)
    for way in WAYS:
        counts = counted(all_claims(results, way))
        assert counts[Verdict.HOLDS] == counts.total() > 20
    assert "All of the thesis's numbers come out in one reading" in page_of(lines)


@pytest.mark.parametrize(
    ("part", "path", "value", "before", "after"),
    [
        ("cut", ("exposed", "honest", "60"), 88.0, "does not see this", "measure, beside this"),
        ("selfish", ("own", "heaviest tenth"), 0.1, "runs out of trust", "Those who search much, beside"),
        ("equal", ("equal", "author"), 1.7, "wants, with *back* and *no back*", "in no reading"),
        ("equal", ("equal", "their friends"), 1.0, "Their friends submit less", "adds a little.) ## The"),
        ("hops", ("hops",), 2.2, "All of the thesis's numbers", "No reading gives all"),
    ],
)  # fmt: skip
def test_the_words_of_the_page_turn_with_the_numbers(lines, part, path, value, before, after):
    assert before in page_of(lines)
    assert after in page_of(changed(lines, part, path, value))


def test_the_opening_says_that_the_crowd_hides_if_no_engine_finds_most(lines):
    weak = changed(lines, CUT, ("exact", "success"), 0.2)
    assert "The crowd does not hide authors" in page_of(weak)  # the other engine still does
    weak = changed(weak, CUT, ("engine", "linked_with_network", "success"), 0.2)
    assert "The crowd hides many authors" in page_of(weak)


def test_a_size_that_matters_is_said_to_matter(lines):
    other = copy.deepcopy(lines)
    for one in other:
        if one.get("part") == "size" and one["at"] == 100_000:
            one["engine"]["linked_with_network"]["success"] = 0.3
    assert "A larger crowd hides nobody better" in page_of(lines)
    assert "The size of the crowd matters" in page_of(other)
    assert sized(Results.of(other), "back")[0].judged.on_page == "holds"  # which is about hops


@pytest.mark.parametrize("kept", ["none", "half", "all"])
def test_the_page_is_made_of_whatever_was_measured(lines, kept, tmp_path):
    some = {"none": lines[:1], "half": lines[:1] + lines[1::2], "all": lines}[kept]
    page = written("p003_crowd", Results.of(some), tmp_path, len(CAPTIONS))
    assert ("not measured yet" in page) == (kept != "all")


def test_every_plan_has_a_name_of_its_own_and_a_reading():
    found = list(plans(quick=False))
    names = [plan.name for plan in found]
    assert len(set(names)) == len(names)
    assert {plan.reading for plan in found} == set(WAYS) == {*READINGS, FLAT}
    assert {plan.name for plan in plans(quick=True)} <= set(names)
    for plan in found:
        assert plan.behaviour["back"] == (plan.reading == "back")


def test_networks_are_put_together_person_by_person():
    first, second = np.array([0.0, 1.0, 5.0]), np.array([2.0, 7.0])
    sides = [
        {"10": {"average": float(a.mean()), "deviation": float(a.std()), "people": a.size}}
        for a in (first, second)
    ]
    found = averaged(sides)["10"]
    whole = np.concatenate([first, second])
    assert found["average"] == pytest.approx(whole.mean())
    assert found["deviation"] == pytest.approx(whole.std())
    assert averaged([{"a": 1.0}, {"a": 3.0, "b": 5.0}, {"a": None}]) == {"a": 2.0, "b": 5.0}


@pytest.mark.parametrize("back", [True, False])
def test_the_engine_that_knows_the_rules_knows_who_submits(back):
    """What it reckons is what the simulator does, if nothing is cut out and nobody refuses.

    40,000 queries of each of 12 authors. A share's standard error is at most 0.0025; 0.0125 is five of them,
    so that one of 144 shares is further off by chance less than once in 10,000 runs; the seed is fixed.
    """
    net, each = network.power_law(12, 3), 40_000
    behaviour = Behaviour(penalty=0.0, least_cut=0.0, most_cut=0.0, copies=1, back=back)
    trace = simulator.simulate(net, simulator.authors(12, 12 * each, 3), behaviour, 3)
    seen = np.zeros((12, 12))
    np.add.at(seen, (trace.author, trace.outcomes["submitter"]), 1 / each)
    ended = attackers.absorption(net, back)
    assert ended.sum(axis=1) == pytest.approx(1)
    for who in range(12):
        places = slice(net.start[who], net.start[who + 1])
        weights = net.friends[net.friend[places]]
        reckoned = weights @ ended[places] / (weights.sum() + 1)
        reckoned[who] += 1 / (weights.sum() + 1)
        assert np.abs(reckoned - seen[who]).max() < 0.0125


def test_the_engine_that_knows_the_rules_is_no_oracle():
    """With one query it can do little better than the submitter; with many it finds most authors."""
    net, found = network.power_law(300, 1), {}
    for each in (1, 50):
        trace = simulator.simulate(net, simulator.authors(300, 300 * each, 1), Behaviour(back=False), 1)
        observed = list(attackers.observations(trace, attackers.targets(trace, 1)))
        found[each] = attackers.informed_engine(trace, observed, 1)
    assert found[1]["n"] == 300
    assert 0.1 < found[1]["success"] < 0.4
    assert found[50]["success"] > 0.6


def test_equal_shares_are_one_where_all_submit_alike():
    """Friends of one person in the middle: each submits the same, since queries do not go back."""
    star = network.friendships(5, np.zeros(4, np.int32), np.arange(1, 5, dtype=np.int32))
    behaviour = Behaviour(penalty=0.0, least_cut=0.0, most_cut=0.0, copies=1, back=False)
    trace = simulator.simulate(star, simulator.authors(5, 100_000, 2), behaviour, 2)
    found = equal_shares(trace)
    assert found == pytest.approx({"author": 1, "friends": 1, "their friends": 1}, abs=0.03)

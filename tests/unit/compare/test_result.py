"""Results: the same as JSON and back, intervals over repeats, and what may be proposed."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import stdev

import msgspec
import pytest

from querycloak.attacks.finding import Finding, Linkage
from querycloak.compare.decide import eligible
from querycloak.compare.recommend import Goal
from querycloak.compare.result import (
    ATTACKERS,
    NOTHING_TO_LINK,
    CandidateResult,
    Comparison,
    combine_runs,
    interval,
    label_text,
)
from querycloak.errors import DataError
from querycloak.knowledge import Knowledge
from querycloak.protector import Labels
from querycloak.registry import METHODS
from tests.unit.report.comparisons import comparison, made, usual


def test_json_and_back_is_the_same():
    found = usual()
    assert Comparison.from_dict(json.loads(found.as_json())) == found
    assert list(found.as_dict()["candidates"][0])[:5] == ["name", "line", "methods", "settings", "along"]
    assert set(found.as_dict()["candidates"][-1]) == {
        "name", "line", "methods", "settings", "along", "failed", "repeats",
    }  # fmt: skip


def test_a_comparison_of_an_earlier_version_can_be_read(tmp_path):
    data = json.loads(usual().as_json()) | {"half_the_people": []}
    (tmp_path / "comparison.json").write_text(json.dumps(data))
    assert Comparison.read(tmp_path) == usual()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "querycloak-comparison/1"}', '{"format": "x"}'])
def test_what_is_no_comparison_is_refused(tmp_path, text):
    (tmp_path / "comparison.json").write_text(text)
    with pytest.raises(DataError):
        Comparison.read(tmp_path)


@pytest.mark.parametrize("repeats", [2, 3, 10, 11, 12, 30])
def test_the_interval_over_repeats_is_students(repeats):
    stats = pytest.importorskip("scipy.stats")
    values = [0.1 * (place % 3) for place in range(repeats)]
    half = stats.t.ppf(0.975, repeats - 1) * stdev(values) / repeats**0.5
    mean, low, high = interval(values)
    assert high - mean == pytest.approx(mean - low)
    assert high - mean == pytest.approx(half, rel=1e-3)


def stored(attack, share, knowledge=Knowledge.RELEASE, game="attribution", labels=Labels.GROUP):
    """The finding of one run, as a worker writes it; `share` is the lower end, the success and the upper."""
    reason = "why" if share[1] is None else None
    found = Finding(attack, game, "record", share[1], share[0], share[2], n=9, not_applicable=reason)
    return found.as_dict() | {"knowledge": knowledge.value, "labels": labels.value}


def combined(labels="mixed", **findings):
    about = {"name": "a", "series": "a", "methods": ["a"], "settings": {}, "varied": None}
    costs = {"seconds": {"protect": 1.0, "attack": 1.0, "measure": 1.0}, "peak_mb": 1}
    run = {"promises": [], "labels": labels, "findings": findings, "measures": {}}
    return combine_runs(about, [run | costs])


def test_the_attack_with_the_largest_upper_end_decides_and_not_the_largest_estimate():
    one = combined(narrow=stored("x", (0.10, 0.105, 0.11)), wide=stored("y", (0.09, 0.10, 0.16)))
    assert one.linked("release") == Linkage("wide", 0.105, 0.10, 0.16)
    assert eligible(comparison(one), 0.12, "release") == []


def test_an_attacker_who_knows_more_is_never_shown_as_weaker():
    one = combined(
        alone=stored("link-repeat", (0.2, 0.22, 0.25)),
        volumes=stored("link-volume", (0.1, 0.16, 0.2), Knowledge.VOLUMES),
    )
    assert one.linked("release") == one.linked("knowing") == one.linked("any")
    assert one.linked("knowing").attack == "alone"
    stronger = combined(
        alone=stored("link-repeat", (0.2, 0.22, 0.25)),
        volumes=stored("link-volume", (0.1, 0.3, 0.4), Knowledge.VOLUMES),
    )
    assert stronger.linked("release").high == 0.25
    assert stronger.linked("knowing") == Linkage("volumes", 0.3, 0.2, 0.4)


@pytest.mark.parametrize("labels", NOTHING_TO_LINK)
def test_nothing_is_linked_where_labels_stand_for_nobody(labels):
    one = combined(labels, overlap=stored("link-overlap", (0.1, 0.2, 0.3), game="identification"))
    assert [one.linked(attacker) for attacker in ATTACKERS] == [None, None, None]
    assert one.why_not_linked == NOTHING_TO_LINK[labels]


@pytest.mark.parametrize(
    ("methods", "labels"),
    [
        (["rules"], "one person each"),
        (["short-sessions"], "one person each"),
        (["swap"], "mixed"),
        (["rules", "cohort"], "mixed"),
        (["cohort", "frequent-only"], "none"),
        (["frequent-only", "rules"], "none"),
        (["rules", "microagg-plain"], "shared"),
        ([], "one person each"),
    ],
)
def test_what_a_label_stands_for_follows_from_the_methods(methods, labels):
    parts = [{"method": name, "settings": METHODS.get(name).Settings().as_dict()} for name in methods]
    assert label_text({"release": {}, "methods": parts}) == labels
    assert label_text({"release": {"table": True}, "methods": parts}) == "table"


def test_the_linked_shares_survive_the_json_form():
    one = combined(narrow=stored("x", (0.10, 0.105, 0.11)), lame=stored("y", (None, None, None)))
    again = msgspec.convert(json.loads(json.dumps(one.as_dict())), CandidateResult)
    assert again.linkage == one.linkage
    assert one.as_dict()["linked"]["any"] == {"attack": "narrow", "success": 0.105, "low": 0.1, "high": 0.11}
    assert set(one.as_dict()["findings"]["lame"]) == {
        *("attack", "game", "unit", "bound", "n", "success", "not_applicable")
    }


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_a_goal_runs_every_attack_that_its_attacker_can_run(attacker):
    names = {one.name for one in Goal(0.1, attacker=attacker).attacks()}
    assert {"link-repeat", "link-time"} <= names
    assert ("link-volume" in names) == ("link-overlap" in names) == (attacker != "release")
    assert not names & {"bayes-concept", "link-pairs", "guess"}


def test_a_release_that_keeps_nothing_is_not_recommended():
    nothing = made("nothing", "a", knowing=0.01, terms=0.0, repeats=1)
    little = made("little", "b", knowing=0.02, terms=0.1, repeats=1)
    goal = Goal(0.1, keep="terms", attacker="knowing")
    assert [one.name for one in goal.best(comparison(nothing, little))] == ["little"]
    assert goal.best(comparison(nothing)) == []


@pytest.mark.parametrize(
    "first", ["import querycloak.compare", "import querycloak.api", "querycloak.compare"]
)
def test_the_package_does_not_hide_the_function_of_its_name(first):
    code = f"import querycloak\n{first}\nfrom querycloak.compare import Comparison\nquerycloak.generate\n"
    code += "assert type(querycloak.compare).__name__ == 'function'\nfrom querycloak import compare\n"
    done = subprocess.run([sys.executable, "-c", code + "assert callable(compare)"], check=False)
    assert done.returncode == 0

"""The page of the five papers: its rules can say yes and no, its commands exist, and it is up to date."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from papers.__main__ import create
from papers.common import index
from papers.common.index import STUDIES, Paper, Stored
from papers.common.render import page, page_name
from papers.common.results import ROOT, read_lines, stored
from papers.common.verdicts import NOT_MEASURED, RULES, Claim, Judgement, Verdict, every_case
from papers.p004.results import Mean

YES, PARTLY, NO, REFUTED, OPEN, MISSING = Verdict
DOCS = ROOT / "docs" / "papers"
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def found() -> list[Paper]:
    return index.papers(stored)


def one(found: list[Paper], words: str) -> Claim:
    """Find the one claim with these words."""
    (claim,) = (claim for paper in found for claim in paper.claims if words in claim.says)
    return claim


@pytest.mark.parametrize(
    ("rule", "given", "verdict"),
    [
        ("close", (24.0, 23.18), YES),
        ("close", (15.0, 23.18), NO),
        ("close", (0.42, 0.18), NO),  # within 5 points, but more than twice as much
        ("close", (90.1, 85), NO),  # within a quarter, but 5.1 points off
        ("similar", (3.2, 4), YES),
        ("similar", (2.8, 4), NO),
        ("as fast", (18.9, 18.99), YES),
        ("as fast", (19.0, 18.99), NO),
        ("below", ([0.2, 0.9], 1), YES),
        ("below", ([0.2, 1.0], 1), PARTLY),
        ("every case", ([True, True],), YES),
        ("every case", ([True, False],), PARTLY),
        ("every case", ([False, False],), NO),
        ("every reading", ([True, True],), YES),
        ("every reading", ([False, False],), NO),
        ("every reading", ([True, False],), OPEN),
        ("bound", ([0.2, 0.4], [0.3, 0.3]), REFUTED),
        ("bound", ([0.2, 0.3], [0.3, 0.3]), OPEN),
        ("control", ([0.9, 0.06],), REFUTED),
        ("control", ([0.9, 0.04],), YES),
        ("accepts", (0.06,), YES),
        ("accepts", (0.04,), NO),
        ("difference", (Mean(0.2, 0.1, 0.3),), YES),
        ("difference", (Mean(-0.2, -0.3, -0.1),), NO),
        ("difference", (Mean(0.0, -0.1, 0.1),), OPEN),
        ("among first", (4, 4), YES),
        ("among first", (5, 4), NO),
        ("among first if fed", (4, 4), YES),
        ("among first if fed", (5, 4), OPEN),
        ("of their data", (), OPEN),
    ],
)
def test_a_rule_can_say_yes_and_no(rule, given, verdict):
    found = RULES[rule](*given)
    assert (found.rule, found.verdict) == (rule, verdict)


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        *(
            (rule, (None, 1.0))
            for rule in ("close", "similar", "as fast", "among first", "among first if fed")
        ),
        ("below", ([], 1.0)),
        *((rule, ([],)) for rule in ("every case", "every reading", "control")),
        ("bound", ([], [])),
        *((rule, (None,)) for rule in ("accepts", "difference")),
    ],
)
def test_what_was_not_measured_has_no_verdict(rule, given):
    assert RULES[rule](*given) == Judgement(rule, MISSING)
    assert RULES[rule](*given).in_index == "cannot be told here"


def planted(tmp_path: Path, study: str, change: Change) -> Stored:
    """Store one study's lines with something changed, and the others as they are."""
    lines = [json.loads(text) for text in stored(study).read_text().splitlines()]
    for line in lines:
        change(line)
    other = tmp_path / f"{study}.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lambda name: other if name == study else stored(name)


def attack(name: str, at: str, success: float) -> Change:
    """Plant an attack's success on one release."""

    def change(line: dict[str, Any]) -> None:
        if line.get("name", "").endswith(at) and name in line.get("attacks", {}):
            line["attacks"][name] |= {"success": success, "low": success, "high": success, "by_repeats": {}}

    return change


def measure(name: str, *path: str, value: float) -> Change:
    """Plant a number of all lines whose names begin so."""

    def change(line: dict[str, Any]) -> None:
        if (line.get("name") or "").startswith(name):
            for key in path[:-1]:
                line = line[key]
            line[path[-1]] = value

    return change


def ours_stay_below(line: dict[str, Any]) -> None:
    for found in line.get("attacks", {}).values():
        found |= {"low": 0.0, "by_repeats": {}}


@pytest.mark.parametrize(
    ("words", "study", "change", "before", "after"),
    [
        ("Theorem 1", "p000", ours_stay_below, REFUTED, OPEN),
        ("three attacks stay below", "p000", attack("link-profile", "swap k=3 level=13", 0.4), YES, NO),
        ("its best attack links", "p000", attack("link-profile", "swap k=3 level=13", 0.23), NO, YES),
        ("its simplest attack", "p000", attack("link-random", "swap k=3 level=13", 0.18), NO, YES),
        ("from k=100 on", "p000", attack("link-random", "swap k=190 level=2", 0.01), YES, NO),
        ("18.99 µs", "p000", measure("base: swap k=3 level=1", "microseconds_per_record", value=20.0),
         YES, NO),
        ("whatever k", "p000", measure("base: swap", "profile", "loss", value=0.009), NO, YES),
        ("m=2, k=2: revenue", "p001", measure("greedy", "kept", "revenue", value=61.0), NO, YES),
        ("m=3, k=100: log size", "p001", measure("greedy", "kept", "logsize", value=30.0), YES, NO),
        ("exactly 0", "p002", measure("D(q)=P 4 sqc1", "loss", value=1e-9), YES, NO),
        ("NSQC loses about 4 times", "p002", measure("A none per=query", "loss", value=0.4), NO, YES),
        ("3.59 hops", "p003_crowd", measure("exponent", "hops", value=3.6), OPEN, YES),
        ("3.59 hops", "p003_crowd", measure("exponent", "hops", value=1.6), OPEN, NO),
        ("40 % uncertainty", "p003_crowd",
         measure("exponent, histories", "exposed", "honest", "60", value=4.0), NO, YES),
        ("lost at k=3 ", "p003",
         measure("syntactic 3", "information_loss_ratio.queries_mean", value=11.0), NO, YES),
        ("semantic MDAV", "p003", measure("semantic", "partition_loss.loss_80", value=1.0), NO, YES),
        ("at d=20", "p003", measure("threshold 20", "rows", value=0.1), NO, YES),
        ("protects structure", "p004", measure("attack tmn", "structure", value=[0.1, 0.1]), YES, NO),
        ("worst case of topics", "p004", measure("attack tmn", "worst", value=0.9), NO, YES),
    ],
)  # fmt: skip
def test_a_verdict_turns_when_its_lines_do(found, tmp_path, words, study, change, before, after):
    in_index = {YES: "reproduced", NO: "not reproduced", REFUTED: "refuted", OPEN: "cannot be told here"}
    assert one(found, words).judged.in_index == in_index[before]
    changed = index.paper(study[:4], planted(tmp_path, study, change))
    assert one([changed], words).judged.in_index == in_index[after]


def test_one_verdict_has_words_for_page_index_and_sentence():
    half, none = every_case([True, False, True]), every_case([])
    assert (half.on_page, half.in_index) == ("in part (2 of 3)", "not reproduced")
    assert (half.in_sentence, half.after_that) == ("Does not hold everywhere", "holds in part (2 of 3)")
    assert (none.on_page, none.in_index) == ("not measured yet", "cannot be told here")
    assert (none.in_sentence, none.after_that) == (
        "Cannot be said (not measured in this run)",
        "is not measured yet",
    )
    assert (every_case([True]).on_page, every_case([False]).on_page) == ("holds", "**does not hold**")


def ordered(line: dict[str, Any]) -> None:
    """Plant the ordering that paper 002 finds."""
    losses = {"sqc2": 0.1, "sqc1": 0.2, "none": 0.3, "hbdp": 0.4}
    if line.get("method") in losses and "loss_error" in line:
        line |= {"loss": losses[line["method"]], "loss_error": 0.001}


def test_the_ordering_of_paper_002_can_hold(tmp_path):
    changed = index.paper("p002", planted(tmp_path, "p002", ordered))
    assert [c.judged.verdict for c in changed.claims if "SQC2 < SQC1" in c.says] == [YES, YES]


def test_a_run_with_few_lines_says_what_is_missing(tmp_path):
    """Only the first line of each study, which describes its log, is there."""
    for study in STUDIES:
        first = stored(study).read_text().partition("\n")[0]
        (tmp_path / f"{study}.jsonl").write_text(first + "\n")
    found = index.papers(lambda name: tmp_path / f"{name}.jsonl")
    waiting = [claim for paper in found for claim in paper.claims if not claim.judged.measured]
    assert len(waiting) > 40
    assert {claim.why for claim in waiting} == {NOT_MEASURED}
    assert {claim.judged.in_index for claim in waiting} == {"cannot be told here"}


def test_every_claim_has_its_figures_a_reason_a_rule_and_a_command_that_exists(found):
    for claim in (claim for paper in found for claim in paper.claims):
        assert all((claim.says, claim.paper, claim.here, claim.why)), claim
        assert "–" not in claim.here.split(), f"{claim.says}: no figure"
        assert claim.judged.measured, claim.says
        assert claim.judged.rule in RULES
        assert re.fullmatch(r"python -m papers (\w+)", claim.command)[1] in STUDIES


def test_the_index_is_up_to_date(found):
    assert (DOCS / "index.md").read_text("utf-8") == index.text(found), "run `make papers`"
    assert "A quick run" in index.text(found, quick=True)


@pytest.mark.parametrize("study", STUDIES)
def test_a_page_is_up_to_date(study):
    """The words and tables of each page follow from the stored lines; figures are not drawn here."""
    results = importlib.import_module(f"papers.{study}.results").Results.load(stored(study))
    pages = {"": page(study, results)}
    more = getattr(importlib.import_module(f"papers.{study}.page"), "MORE", {})
    pages |= {f"-{part}": text(results) for part, text in more.items()}
    for part, text in pages.items():
        assert text == (DOCS / f"{page_name(study)}{part}.md").read_text("utf-8"), "run `make papers`"


def test_the_makefile_makes_it():
    assert "\npapers: $(STAMP)\n" in (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.parametrize("study", STUDIES)
def test_nothing_is_left_to_measure(study):
    """So `make papers` measures nothing in a clean clone, and leaves the stored results as they are."""
    made = importlib.import_module(f"papers.{study}.run").Study()
    lines = read_lines(stored(study))
    assert {plan.name for plan in made.plans()} <= {line.get("name") for line in lines}
    known = lines[0]["about"]
    assert {name: known[name] for name in made.identity()} == made.identity()


@pytest.mark.parametrize("study", STUDIES)
def test_a_quick_run_measures_less(study):
    run = importlib.import_module(f"papers.{study}.run")
    quick, full = ({plan.name for plan in run.Study(quick=quick).plans()} for quick in (True, False))
    assert len(quick) < len(full)


def test_settings_of_a_study_can_be_changed():
    made = create("p004", False, ["functions=60", "draws=20"])
    assert (made.functions, made.draws, made.users) == (60, 20, 100)
    with pytest.raises(SystemExit, match="unknown setting `function`"):
        create("p004", False, ["function=60"])

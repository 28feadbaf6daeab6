"""The page of the five papers: its rules can say yes and no, its commands exist, and it is up to date."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks import (
    paper_000,
    paper_001,
    paper_002,
    paper_003,
    paper_003_crowd,
    paper_004,
    papers,
    papers_index,
)
from benchmarks.__main__ import RESULTS
from benchmarks.paper_004_results import Mean
from benchmarks.papers_rules import NOT_MEASURED, RULES, Claim, Judged, Paper, Stored, Verdict

ROOT = Path(__file__).parents[3]
YES, NO, REFUTED, OPEN = Verdict
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def found() -> list[Paper]:
    return papers_index.papers(papers.stored)


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
        ("below", ([0.2, 1.0], 1), NO),
        ("every case", ([True, True],), YES),
        ("every case", ([True, False],), NO),
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
    assert RULES[rule](*given) == Judged(rule, verdict)


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
    assert RULES[rule](*given) == Judged(rule, OPEN, measured=False)


def planted(tmp_path: Path, study: str, change: Change) -> Stored:
    """Store one study's lines with something changed, and the others as they are."""
    lines = [json.loads(text) for text in papers.stored(study).read_text().splitlines()]
    for line in lines:
        change(line)
    other = tmp_path / f"{study}.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lambda name: other if name == study else papers.stored(name)


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
        ("Theorem 1", "paper-000", ours_stay_below, REFUTED, OPEN),
        ("three attacks stay below", "paper-000", attack("link-profile", "swap k=3 level=13", 0.4), YES, NO),
        ("its best attack links", "paper-000", attack("link-profile", "swap k=3 level=13", 0.23), NO, YES),
        ("its simplest attack", "paper-000", attack("link-random", "swap k=3 level=13", 0.18), NO, YES),
        ("from k=100 on", "paper-000", attack("link-random", "swap k=190 level=2", 0.01), YES, NO),
        ("18.99 µs", "paper-000", measure("base: swap k=3 level=1", "microseconds_per_record", value=20.0),
         YES, NO),
        ("whatever k", "paper-000", measure("base: swap", "profile", "loss", value=0.009), NO, YES),
        ("m=2, k=2: revenue", "paper-001", measure("greedy", "kept", "revenue", value=61.0), NO, YES),
        ("m=3, k=100: log size", "paper-001", measure("greedy", "kept", "logsize", value=30.0), YES, NO),
        ("exactly 0", "paper-002", measure("D(q)=P 4 sqc1", "loss", value=1e-9), YES, NO),
        ("NSQC loses about 4 times", "paper-002", measure("A none per=query", "loss", value=0.4), NO, YES),
        ("3.59 hops", "paper-003-crowd", measure("exponent", "hops", value=3.6), OPEN, YES),
        ("3.59 hops", "paper-003-crowd", measure("exponent", "hops", value=1.6), OPEN, NO),
        ("40 % uncertainty", "paper-003-crowd",
         measure("exponent, histories", "exposed", "honest", "60", value=4.0), NO, YES),
        ("lost at k=3 ", "paper-003",
         measure("syntactic 3", "information_loss_ratio.queries_mean", value=11.0), NO, YES),
        ("semantic MDAV", "paper-003", measure("semantic", "partition_loss.loss_80", value=1.0), NO, YES),
        ("at d=20", "paper-003", measure("threshold 20", "rows", value=0.1), NO, YES),
        ("protects structure", "paper-004", measure("attack tmn", "structure", value=[0.1, 0.1]), YES, NO),
        ("worst case of topics", "paper-004", measure("attack tmn", "worst", value=0.9), NO, YES),
    ],
)  # fmt: skip
def test_a_verdict_turns_when_its_lines_do(found, tmp_path, words, study, change, before, after):
    assert one(found, words).judged.verdict is before
    (module,) = (one for one in papers_index.MODULES if one.__name__.endswith(study.split("-")[1]))
    changed = module.paper(planted(tmp_path, study, change))
    assert one([changed], words).judged.verdict is after


def ordered(line: dict[str, Any]) -> None:
    """Plant the ordering that paper 002 finds."""
    losses = {"sqc2": 0.1, "sqc1": 0.2, "none": 0.3, "hbdp": 0.4}
    if line.get("method") in losses and "loss_error" in line:
        line |= {"loss": losses[line["method"]], "loss_error": 0.001}


def test_the_ordering_of_paper_002_can_hold(tmp_path):
    changed = papers_index.papers_claims_002.paper(planted(tmp_path, "paper-002", ordered))
    assert [c.judged.verdict for c in changed.claims if "SQC2 < SQC1" in c.says] == [YES, YES]


def test_a_run_with_few_lines_says_what_is_missing(tmp_path):
    """Only the first line of each study, which describes its log, is there."""
    for study in papers.STUDIES:
        name = study.replace("_", "-")
        first = papers.stored(name).read_text().partition("\n")[0]
        (tmp_path / f"{name}.jsonl").write_text(first + "\n")
    found = papers_index.papers(lambda name: tmp_path / f"{name}.jsonl")
    waiting = [claim for paper in found for claim in paper.claims if not claim.judged.measured]
    assert len(waiting) > 40
    assert {claim.why for claim in waiting} == {NOT_MEASURED}
    assert {claim.judged.verdict for claim in waiting} == {OPEN}


def test_every_claim_has_its_figures_a_reason_a_rule_and_a_command_that_exists(found):
    for claim in (claim for paper in found for claim in paper.claims):
        assert all((claim.says, claim.paper, claim.here, claim.why)), claim
        assert "–" not in claim.here.split(), f"{claim.says}: no figure"
        assert claim.judged.measured, claim.says
        assert claim.judged.rule in RULES
        command, flag, module = claim.command.split()
        assert (command, flag) == ("python", "-m")
        assert callable(importlib.import_module(module).main)
        assert module.removeprefix("benchmarks.") in papers.STUDIES


def test_the_page_is_up_to_date(found):
    assert papers.PAGE.read_text("utf-8") == papers_index.text(found), "run `make papers`"
    assert "A quick run" in papers_index.text(found, "../{}-quick/")


@pytest.mark.parametrize("study", papers.STUDIES)
def test_a_full_page_is_up_to_date(study, tmp_path, monkeypatch):
    """The words and tables of each full page follow from the stored lines; figures are not drawn here."""
    module = importlib.import_module(f"benchmarks.{study}_page")
    page = tmp_path / module.PAGE.relative_to(ROOT)
    page.parent.mkdir(parents=True)
    monkeypatch.setattr(module, "PAGE", page)
    monkeypatch.setattr(module, "ROOT", tmp_path, raising=False)
    monkeypatch.setattr(module if study == "paper_000" else module.figures, "draw", lambda *_: None)
    expected = [names("paper_001")] if study == "paper_001" else []
    module.write(papers.stored(study.replace("_", "-")), *expected)
    assert page.exists()
    for one in page.parent.iterdir():
        assert one.read_text() == (papers.PAGE.parent / one.name).read_text("utf-8"), one.name


def test_the_makefile_makes_it():
    assert "\npapers: $(STAMP)\n" in (ROOT / "Makefile").read_text("utf-8")


def names(study: str) -> set[str]:
    """Name all that a study measures."""
    if study == "paper_000":
        return {one.name for one in paper_000.settings(paper_000.KS, paper_000.LEVELS)}
    if study == "paper_001":
        return {f"{way} {target} k={k} m={m}" for target, k, m, way in paper_001.settings(paper_001.KS)}
    if study == "paper_004":
        return {plan.name for plan in paper_004.plans(paper_004.Extent(), paper_004.Setup().users)}
    module = {"paper_002": paper_002, "paper_003": paper_003, "paper_003_crowd": paper_003_crowd}[study]
    return {plan.name for plan in module.plans(False)}


@pytest.mark.parametrize("study", papers.STUDIES)
def test_nothing_is_left_to_measure(study):
    """So `make papers` measures nothing in a clean clone, and leaves the stored results as they are."""
    path = RESULTS / f"{study.replace('_', '-')}.jsonl"
    there = {json.loads(text).get("name") for text in path.read_text().splitlines()}
    assert names(study) <= there

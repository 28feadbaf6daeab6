"""`compare`, `recommend` and the gate, as people and pipelines call them."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner

from querycloak.cli import main

ASKED = (
    "-m",
    "cohort:k=3,5",
    "-m",
    "frequent-only:k=2",
    "-a",
    "link-repeat",
    "-a",
    "link-overlap",
    "--seed",
    "1",
)
MEASURES = ("-u", "release_rate", "-u", "jensen_shannon", "-u", "terms_kept", "-u", "clicks_kept")


def run(*words):
    """Call `querycloak` with these words."""
    return CliRunner().invoke(main, list(words))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    assert run("generate", "--users", "80", "--seed", "4", "--categories", "-o", str(path)).exit_code == 0
    return str(path)


@pytest.fixture(scope="module")
def out(log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    done = run("compare", log, *ASKED, *MEASURES, "-o", str(folder))
    assert done.exit_code == 0, done.stderr
    assert str(folder / "report.html") in done.stderr.splitlines()[-1]
    assert "cohort k=3" in done.stderr
    return folder


def test_all_forms_are_there_and_agree(out):
    data = json.loads((out / "comparison.json").read_text())
    rows = list(csv.DictReader((out / "comparison.csv").read_text().splitlines()))
    found = {(row["candidate"], row["name"]): row for row in rows if row["kind"] == "attack"}
    for one in data["candidates"]:
        for label, finding in one["findings"].items():
            if finding["success"] is not None:
                assert float(found[one["name"], label]["value"]) == pytest.approx(finding["success"])
    assert "cohort k=5" in (out / "comparison.md").read_text()
    page = (out / "report.html").read_text()
    assert "cohort k=5" in page
    assert {one["method"] for one in data["not_run"]} >= {"swap", "km"}
    assert all(one["method"] in page for one in data["not_run"])


def test_json_has_the_comparison_and_the_files(log, out):
    done = run("compare", log, *ASKED, *MEASURES, "-o", str(out), "--json")
    told = json.loads(done.stdout)
    assert told["written"][0] == "report.html"
    assert told["comparison"] == json.loads((out / "comparison.json").read_text())


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("[[check]]\nmax_linked = 0.6\nbounds = true\npromises = true\nmin_kept = {records = 0.01}", 0, ""),
        ("[[check]]\ncandidate = 'cohort k=3'\nmax_linked = 0.1", 4, "cohort k=3: link-"),
        ("[[check]]\nattacks = {link-repeat = 0.01}", 4, "link-repeat succeeds for"),
        ("[[check]]\ncandidate = 'cohort'\nmin_kept = {records = 1.0}", 4, "records kept: "),
        ("[[check]]\ncandidate = 'km'", 4, "it is not in the comparison"),
        ("[[check]]\nmax_linkd = 0.1", 2, "a check has no `max_linkd`"),
        ("[[check]]\nmax_linked = 5", 2, "must be a share from 0 to 1"),
        ("[[check]]\nattacker = 'nobody'", 2, "no attacker is called"),
        ("[[check]]\nmin_kept = {love = 0.5}", 2, "nothing that is kept is called"),
        ("max_linked = 0.1", 2, "`[[check]]` tables and nothing else"),
        ("[[check", 2, "cannot be read"),
    ],
)
def test_a_gate_opens_or_not(log, out, tmp_path, text, status, said):
    gate = tmp_path / "gate.toml"
    gate.write_text(text)
    done = run("compare", log, *ASKED, *MEASURES, "-o", str(out), "--gate", str(gate))
    assert (done.exit_code, said in done.stderr) == (status, True), done.stderr


def test_what_cannot_be_asked_is_refused_before_anything_is_read(tmp_path):
    for asked, said in (
        ((), "nothing to compare"),
        (("--preset", "slow"), "no preset"),
        (("-m", "cohort:k"), "cannot be read"),
        (("-m", "cohort", "-a", "nothing"), "nothing"),
    ):
        done = run("compare", "no-such-log", *asked, "-o", str(tmp_path / "out"))
        assert done.exit_code == 2
        assert said in done.stderr


def test_a_log_that_is_not_there_is_told(tmp_path):
    done = run("compare", str(tmp_path / "none.tsv"), "-m", "cohort", "-o", str(tmp_path / "out"))
    assert done.exit_code == 2, done.stderr
    assert "Traceback" not in done.stderr


def test_recommend_proposes_what_keeps_to_the_limit(log, tmp_path, monkeypatch):
    from querycloak.compare.plan import ready_made

    monkeypatch.setitem(ready_made()["recommend"], "candidates", ["cohort:k=3,12", "km:m=2:k=2"])
    done = run(
        "recommend",
        log,
        "--max-linkage",
        "0.45",
        "--attacker",
        "release",
        "-o",
        str(tmp_path / "out"),
        "--json",
    )
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["proposed"]["linked"]["high"] <= 0.45
    assert told["tried"] > 3, "it looked closer"
    assert told["command"].startswith("querycloak protect ")
    names = [one["name"] for one in told["confirmed_on_other_people"]]
    assert told["proposed"]["name"] in names
    assert json.loads((tmp_path / "out" / "proposal.json").read_text()) == told
    asked = ("--max-linkage", "0.45", "--attacker", "release", "-o", str(tmp_path / "out"))
    text = run("recommend", log, *asked)
    assert f"Proposed: {told['proposed']['name']}" in text.stdout
    assert told["command"] in text.stdout


def test_recommend_says_when_nothing_keeps_to_the_limit(log, monkeypatch):
    from querycloak.compare.plan import ready_made

    monkeypatch.setitem(ready_made()["recommend"], "candidates", ["cohort:k=3"])
    done = run("recommend", log, "--max-linkage", "0.0001", "--attacker", "release")
    assert done.exit_code == 4
    assert "None of the" in done.stdout
    assert "at most 0.01 % linked" in done.stdout
    for wrong in (("--max-linkage", "2"), ("--max-linkage", "0.1", "--keep", "all")):
        assert run("recommend", log, *wrong).exit_code == 2

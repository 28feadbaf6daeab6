"""Logs without enough usable rows are refused; a release of nothing has no guarantee that passed."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import querycloak as qc
from querycloak.cli import main
from querycloak.errors import DataError
from querycloak.registry import METHODS
from tests.support.logs import made_up

GOOD, BAD = "u,weather,2006-03-01 10:00:00\n", "u,weather,then\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(good: int, bad: int) -> str:
    Path("log.csv").write_text("user,query,time\n" + GOOD * good + BAD * bad)
    return "log.csv"


def run(*asked: str):
    return CliRunner().invoke(main, asked)


@pytest.mark.parametrize(("good", "bad"), [(0, 0), (0, 3), (4, 5)])
@pytest.mark.parametrize("pieces", [None, 2])
def test_a_log_with_too_many_bad_rows_is_refused(good, bad, pieces):
    log = write(good, bad)
    with pytest.raises(DataError, match=r"`log\.csv`: (5 of 9 rows are bad|3 of 3|no rows)"):
        qc.protect(log, "rules", output="out.csv", piece_rows=pieces)
    assert [path.name for path in Path.cwd().iterdir()] == ["log.csv"]
    release = qc.protect(log, "rules", output="out.csv", piece_rows=pieces, allow_bad=True)
    assert release.report.released == good


def test_half_of_the_rows_may_be_bad():
    assert qc.protect(write(4, 4), "rules").report.released == 4


def test_the_command_line_exits_with_3():
    found = run("protect", write(1, 2), "-m", "rules", "-o", "out.csv")
    assert found.exit_code == 3
    assert found.output == (
        "error: `log.csv`: 2 of 3 rows are bad; unreadable time (2)\n\n"
        "hint: check `--format` and `--map`; `--allow-bad` accepts the log\n"
    )
    assert run("protect", "log.csv", "-m", "rules", "-o", "out.csv", "--allow-bad").exit_code == 0


def test_a_frame_without_a_usable_row_is_refused():
    with pytest.raises(DataError, match="2 of 2 rows are bad; no user"):
        qc.protect(pl.DataFrame({"user": ["", ""], "query": ["a", "b"]}), "frequent-only")


@pytest.mark.parametrize(
    "asked",
    [
        ("measure", "out.csv", "--original", "log.csv"),
        ("attack", "out.csv", "--original", "log.csv", "--truth", "truth.parquet"),
        ("classify", "log.csv", "-o", "classified.csv"),
        ("compare", "log.csv", "-m", "rules", "-o", "report"),
        ("obfuscate", "log.csv", "-m", "usr", "-o", "covered.csv"),
    ],
)
def test_every_verb_refuses_a_log_without_a_usable_row(asked):
    qc.protect(write(3, 0), "rules", output="out.csv", truth="truth.parquet")
    write(0, 3)
    found = run(*asked)
    assert found.exit_code == 3, found.output
    assert "`log.csv`: 3 of 3 rows are bad; unreadable time (3)" in found.output


@pytest.fixture(scope="module")
def log():
    return made_up(users=64, seed=3, categories=True)


def test_a_release_of_nothing_has_a_warning_and_no_passed_check(log, folder):
    asked = {"k": 30, "shards": 8, "output": "out.csv", "truth": "truth.parquet"}
    release = qc.protect(log, "cohort", **asked)
    document = json.loads(Path("out.csv.certificate.json").read_text())
    assert document["audit"] == "not applicable"
    checks = [check for part in document["methods"] for check in part["checks"]] + document["lineage"]
    assert {check["verdict"] for check in checks} == {"not applicable"}
    assert {check["detail"] for check in document["methods"][0]["checks"]} == {"no record was released"}
    (text,) = release.report.warnings
    assert text.startswith("nothing was released: cohort: the cohort did not fill up (")
    assert text.endswith("hint: use `-s cohort.shards=2` or `-s cohort.k=8`, which protects less")
    for change in ({"shards": 2}, {"k": 8}):  # the hint is right
        assert qc.protect(log, "cohort", **asked | change).report.released


def test_the_command_line_warns_and_exits_with_0(log):
    qc.write(log, "log.parquet")
    found = run("protect", "log.parquet", "-m", "frequent-only", "-s", "k=60", "-o", "out.csv")
    assert found.exit_code == 0
    assert "[not applicable]" in found.output
    assert "warning: nothing was released: frequent-only: asked by too few people (" in found.output
    assert "hint: use `-s frequent-only.k=30`, which protects less" in found.output
    assert "kept" not in found.output
    assert run("verify", "out.csv").exit_code == 0


def test_a_release_of_something_has_no_warning(log):
    assert qc.protect(log, "frequent-only", k=2).report.warnings == []


@pytest.mark.parametrize("name", METHODS.names())
def test_every_method_with_a_main_setting_names_a_weaker_one(name):
    kind = METHODS.get(name)
    for settings in kind.examples():
        hint = kind.weaker_settings(settings, 1_000)
        assert hint == "" or hint.startswith(f"use `-s {name}.")

"""`querycloak measure --own HISTORY`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LINES = ["2024-03-04 09:00:00\tdiabetes symptoms", "john smith 12 oak street", "me@example.org"] * 3


@pytest.fixture
def own(run):
    Path("history.txt").write_text("\n".join(LINES))
    return run


def test_counts_by_default_and_queries_only_with_show(own):
    done = own("measure", "--own", "history.txt")
    assert done.exit_code == 0, done.output
    assert "An e-mail address stands in 3 searches." in done.stdout
    assert "example.org" not in done.output
    shown = own("measure", "--own", "history.txt", "--show", "--json")
    found = json.loads(shown.stdout)["own"]
    assert found["searches"] == 7
    assert found["shown"]["personal"]["an e-mail address"] == ["me@example.org"]
    assert "shown" not in json.loads(own("measure", "--own", "history.txt", "--json").stdout)["own"]


def test_the_page_is_for_its_owner_only(own):
    done = own("measure", "--own", "history.txt", "-o", "own.html", "--quiet")
    assert (done.exit_code, done.output) == (0, "")
    assert Path("own.html").stat().st_mode & 0o777 == 0o600
    assert "example.org" not in Path("own.html").read_text("utf-8")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("out.tsv",),
        ("--original", "log.tsv"),
        ("out.tsv", "--own", "history.txt"),
        ("--own", "history.txt", "--original", "log.tsv"),
        ("--own", "history.txt", "-u", "retention"),
        ("--own", "history.txt", "--truth", "t.parquet"),
        ("--own", "history.txt", "-o", "own.pdf"),
        ("--own", "missing.txt"),
        ("out.tsv", "--original", "log.tsv", "--show"),
        ("out.tsv", "--original", "log.tsv", "-o", "own.html"),
    ],
)
def test_mixtures_are_usage_errors(own, words):
    done = own("measure", *words)
    assert done.exit_code == 2
    assert "hint" in done.output or "missing" in done.output


@pytest.mark.parametrize("content", ["", "\n\n", "[]", '[{"title": "Visited a page"}]'])
def test_an_empty_history_is_said_clearly(run, content):
    Path("empty.txt").write_text(content)
    done = run("measure", "--own", "empty.txt")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "there is no search in this history" in done.output

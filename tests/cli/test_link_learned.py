"""`attack -a link-learned` on a trace with fakes, as a user runs it: no certificate, one truth file."""

from __future__ import annotations

import json

import polars as pl
import pytest
from click.testing import CliRunner

from querycloak import io
from querycloak.cli import main
from tests.unit.attacks.learned.traces import drawn

pytestmark = pytest.mark.learn
ARGUMENTS = (
    "attack", "trace.tsv", "-a", "link-learned", "--truth", "t.parquet", "--original", "log.tsv",
    "-s", "targets=4", "-s", "functions=3", "--seed", "1",
)  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trace = drawn(people=10, marked=True)
    io.write(trace.release.drop("released_row"), "trace.tsv")
    io.write(trace.original.drop("row"), "log.tsv")
    trace.truth.write_parquet("t.parquet")
    return lambda *more: CliRunner().invoke(main, [*ARGUMENTS, *more])


def test_json_has_the_three_kinds_of_privacy(run):
    result = run("--json")
    assert result.exit_code == 0, result.output
    (finding,) = json.loads(result.output)["findings"]
    assert (finding["attack"], finding["game"], finding["details"]["targets"]) == (
        "link-learned",
        "linkage",
        4,
    )
    assert finding["success"] >= 0.99
    for kind, part in (("structure", "error"), ("semantic", "worst"), ("relative", "error")):
        assert {"mean", "low", "high", "median", "values"} <= finding[kind][part].keys()


def test_a_reader_sees_them_and_how_many_people_were_attacked(run):
    told = run().output
    assert "link-learned, 4 of 10 people:" in told
    for name in ("structure privacy", "worst-case semantic privacy", "relative privacy"):
        assert name in told


def test_a_majority_has_no_relative_privacy(run):
    told = run("-s", "aggregate=majority").output
    assert [line.split()[2] for line in told.splitlines() if "relative privacy" in line] == ["–"]


def test_landing_pages_are_read_where_a_trace_has_them(run):
    trace = io.read("trace.tsv", required=()).frame
    marked = trace.with_columns(
        landing=pl.when(pl.col("rank").is_null()).then(pl.lit("a page")).otherwise(pl.lit("another page"))
    )
    io.write(
        marked.drop("row"),
        "trace.parquet",
        io.layout_for("trace.parquet", columns=marked.drop("row").columns),
    )
    arguments = ["trace.parquet" if part == "trace.tsv" else part for part in ARGUMENTS]
    result = CliRunner().invoke(main, [*arguments, "--json"])
    (finding,) = json.loads(result.output)["findings"]
    assert finding["details"]["landing_pages_from"] == "landing"

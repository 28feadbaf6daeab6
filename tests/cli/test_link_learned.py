"""`attack -a link-learned` on a trace with fakes, as a user runs it: no certificate, one truth file."""

from __future__ import annotations

import json

import polars as pl
import pytest
from click.testing import CliRunner

from querycloak import formats
from querycloak.cli import main
from tests.unit.attacks.link_learned.traces import drawn

pytestmark = pytest.mark.learn
ARGUMENTS = (
    "attack", "trace.tsv", "-a", "link-learned", "--truth", "t.parquet", "--original", "log.tsv",
    "-s", "targets=4", "-s", "functions=3", "--seed", "1",
)  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trace = drawn(people=10, marked=True)
    formats.write(trace.release.drop("released_row"), "trace.tsv")
    formats.write(trace.original.drop("row"), "log.tsv")
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
    trace = formats.read("trace.tsv", required=()).frame
    marked = trace.with_columns(
        landing=pl.when(pl.col("rank").is_null()).then(pl.lit("a page")).otherwise(pl.lit("another page"))
    )
    formats.write(
        marked.drop("row"),
        "trace.parquet",
        formats.Layout.for_output("trace.parquet", columns=marked.drop("row").columns),
    )
    arguments = ["trace.parquet" if part == "trace.tsv" else part for part in ARGUMENTS]
    result = CliRunner().invoke(main, [*arguments, "--json"])
    (finding,) = json.loads(result.output)["findings"]
    assert finding["details"]["landing_pages_from"] == "landing"


#: Methods, and settings with which they have something to release of so few people.
PROTECTED = {
    "swap": (),
    "cohort": ("-s", "k=4", "-s", "shards=1"),
    "microagg-topic": (),
    "microagg-semantic": (),
}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("released") / "log.parquet"
    done = CliRunner().invoke(
        main, ["generate", "--users", "40", "--seed", "3", "--categories", "-o", str(path), "--quiet"]
    )
    assert done.exit_code == 0, done.output
    return path


def attack_release(log, method, *more):
    """Protect a log, then attack the release."""
    out, truth = log.parent / f"{method}.parquet", log.parent / f"{method}.truth"
    made = [
        "protect",
        str(log),
        "-m",
        method,
        "-o",
        str(out),
        "--truth",
        str(truth),
        "--seed",
        "1",
        "--quiet",
    ]
    done = CliRunner().invoke(main, [*made, *PROTECTED.get(method, ())])
    assert done.exit_code == 0, done.output
    asked = ["attack", str(out), "-a", "link-learned", "--original", str(log), "--truth", str(truth)]
    return CliRunner().invoke(main, [*asked, "-s", "targets=8", "-s", "functions=2", "--seed", "1", *more])


@pytest.mark.parametrize("method", PROTECTED)
def test_a_release_of_a_method_is_attacked_with_some_history_known(log, method):
    result = attack_release(log, method, "--json")
    assert result.exit_code == 0, result.output
    (finding,) = json.loads(result.output)["findings"]
    assert finding["not_applicable"] is None
    assert (finding["game"], finding["unit"], finding["bound"]) == ("linkage", "pair", None)
    assert 0.3 < finding["low"] <= finding["success"] <= finding["high"] <= 1.0
    assert finding["structure"]["error"]["mean"] == pytest.approx(1 - finding["success"])
    assert finding["relative"] is None
    assert finding["details"]["made_up"] is method.startswith("microagg")
    assert finding["details"]["importances"]["D_Time"] > 0  # the original was read with its times


def test_a_reader_sees_how_many_people_were_looked_for(log):
    told = attack_release(log, "cohort", "-s", "labels=yes").output
    assert "link-learned, 8 of 40 people:" in told
    assert [line.split()[2] for line in told.splitlines() if "relative privacy" in line] == ["–"]


def test_a_table_of_counts_holds_no_records(log):
    told = attack_release(log, "dp-histogram").output
    assert "link-learned: not applicable" in told
    assert "counts" in told

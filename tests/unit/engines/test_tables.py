"""A table of counts is written, audited, certified, verified and refused like any other release."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import querycloak as qc
from querycloak import formats
from querycloak.certificate import path_of, private_path_of
from querycloak.cli import main
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.errors import BrokenPromise, Refused, UsageError
from querycloak.guarantee import COUNTS_ONLY
from querycloak.registry import METHODS
from tests.reference.tally import Tally
from tests.support.logs import made_up

ENDINGS = ("csv", "tsv", "jsonl", "parquet", "csv.gz", "jsonl.zst")


@pytest.fixture(autouse=True)
def _with_tally(monkeypatch):
    monkeypatch.setattr(METHODS, "added", {**METHODS.added, "tally": Tally})


@pytest.fixture
def log(tmp_path, small_log):
    path = tmp_path / "log.parquet"
    formats.write(small_log, path)
    return path


@pytest.fixture
def aol(tmp_path):
    path = tmp_path / "aol.tsv"
    qc.write(made_up(30, seed=3), str(path), layout=formats.Layout.default("aol"))
    return path


def expected(frame: pl.DataFrame, *names: str) -> list[dict]:
    """Count searches with plain loops, clicks aside, in the order of their texts."""
    searches = {(row["user"], row["query"], row["time"]): row for row in frame.iter_rows(named=True)}
    tally: dict[tuple, int] = {}
    for row in searches.values():
        key = tuple(row[name] for name in names)
        tally[key] = tally.get(key, 0) + 1
    lines = [dict(zip(names, key, strict=True)) | {"count": count} for key, count in tally.items()]
    order = [name for name in ("query", "category", "user") if name in names]
    return sorted(lines, key=lambda line: [line[name] for name in order])


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_holds_the_table_and_verify_reads_it_back(tmp_path, aol, ending):
    out = tmp_path / f"out.{ending}"
    release = qc.protect(aol, "tally", output=out)
    assert release.log.table
    assert release.log.frame.drop("row").to_dicts() == expected(qc.read(aol).frame, "query")
    assert release.certificate["release"]["table"] is True
    found = qc.verify(out)
    assert found.holds
    assert "the table has counts" in {line["check"] for line in found.checked}
    assert {line["detail"] for line in found.not_applicable} == {COUNTS_ONLY}


def test_an_aol_log_gives_a_plain_table(tmp_path, aol):
    qc.protect(aol, "tally", output=tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text().splitlines()[0] == "query\tcount"


def test_lines_come_by_their_texts_and_columns_in_the_order_of_the_design(tmp_path, log, small_log):
    shuffled = tmp_path / "shuffled.parquet"
    formats.write(small_log.sample(fraction=1.0, shuffle=True, seed=5).drop("row"), shuffled)
    tables = [qc.protect(path, "tally", by="all").log.frame for path in (log, shuffled)]
    assert tables[0].columns == ["row", "user", "query", "category", "count"]
    assert tables[0].equals(tables[1])
    assert tables[0].drop("row").to_dicts() == expected(small_log, "user", "query", "category")


def test_every_record_is_accounted_for_and_the_truth_is_empty(tmp_path, log):
    out, truth = tmp_path / "out.csv", tmp_path / "t.parquet"
    release = qc.protect(log, "tally", output=out, truth=truth)
    assert (release.report.released, release.report.withheld) == (17, 72)
    assert release.report.reasons == {"tally": {"counted, not shown": 72}}
    known = pl.read_parquet(truth)
    assert known.columns == ["released_row", "original_row", "original_user", "released_after"]
    assert known.height == 0
    private = json.loads(private_path_of(out).read_text())
    assert (private["rows_read"], private["released"], private["withheld"]) == (72, 17, 72)
    assert qc.verify(out, original=log, truth=truth).holds


@pytest.mark.parametrize("rows", [None, 5, 31])
def test_a_log_in_pieces_gives_the_same_table(log, small_log, rows):
    table = qc.protect(log, "tally", piece_rows=rows).log.frame.drop("row")
    assert table.to_dicts() == expected(small_log, "query")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_empty_table_is_a_release_too(tmp_path, small_log, ending):
    formats.write(small_log.clear(), tmp_path / "none.parquet")
    out = tmp_path / f"out.{ending}"
    release = qc.protect(tmp_path / "none.parquet", "tally", output=out, allow_bad=True)
    assert release.log.frame.columns == ["row", "query", "count"]
    assert len(release.log) == 0
    assert qc.verify(out).holds


def test_a_table_comes_last():
    with pytest.raises(Refused, match="`tally` gives a table of counts, and `rules` needs records"):
        Pipeline(parse_stages(["tally", "rules"], {}), bytes(32), None)


def test_earlier_promises_are_tested_where_a_table_can_show_them(tmp_path, log):
    out = tmp_path / "out.csv"
    release = qc.protect(log, "rules", "tally", output=out)
    rules = release.certificate["methods"][0]["checks"]
    assert {check["verdict"] for check in rules} == {"kept"}
    release = qc.protect(log, "frequent-only", "tally", output=out, k=3)
    frequent = release.certificate["methods"][0]["checks"]
    assert {(check["verdict"], check["detail"]) for check in frequent} == {("not applicable", COUNTS_ONLY)}


def test_a_table_cannot_be_ubi_except_as_json_lines_on_standard_output(tmp_path, log):
    with pytest.raises(UsageError, match="cannot be written as ubi"):
        qc.protect(log, "tally", output=tmp_path / "out.ubi")
    assert not (tmp_path / "out.ubi").exists()
    assert (
        formats.Layout.for_counts("-", ["query", "count"], like=formats.Layout.default("ubi")).format
        == "jsonl"
    )


def test_a_column_added_by_a_forger_is_found(tmp_path, log):
    out = tmp_path / "out.csv"
    qc.protect(log, "tally", output=out)
    lines = out.read_text().splitlines()
    out.write_text("\n".join([lines[0] + ",who", *(line + ",someone" for line in lines[1:])]) + "\n")
    document = json.loads(path_of(out).read_text())
    document["release"]["sha256"] = hashlib.sha256(out.read_bytes()).hexdigest()
    del document["release"]["table"]
    path_of(out).write_text(json.dumps(document))
    found = qc.verify(out)
    assert [line["check"] for line in found.broken] == [
        "the release has exactly the columns and records of its layout"
    ]


def test_a_table_that_breaks_its_promise_is_not_written(tmp_path, log, monkeypatch):
    monkeypatch.setattr(Tally, "_no_counts", staticmethod(lambda evidence: "3 lines are wrong"))
    with pytest.raises(BrokenPromise):
        qc.protect(log, "tally", output=tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["log.parquet"]


def test_attacks_and_measures_say_that_they_do_not_apply(tmp_path, log, monkeypatch):
    monkeypatch.chdir(tmp_path)
    release = qc.protect(log, "tally", output="out.csv", truth="t.parquet")
    original = qc.read(log)
    assert {finding.not_applicable for finding in qc.attack(release, original)} == {COUNTS_ONLY}
    measured = qc.measure(original, release.log)
    assert all(value == {"not_applicable": COUNTS_ONLY} for value in measured.values())
    files = ["out.csv", "--original", str(log)]
    done = CliRunner().invoke(main, ["attack", *files, "--truth", "t.parquet"])
    assert done.exit_code == 0
    assert f"link-random: not applicable ({COUNTS_ONLY})" in done.output
    for certificate in (True, False):
        if not certificate:
            path_of(Path("out.csv")).unlink()
        done = CliRunner().invoke(main, ["measure", *files])
        assert done.exit_code == 0
        assert f"release_rate: not applicable ({COUNTS_ONLY})" in done.output


def test_the_command_says_how_many_lines_and_standard_output_takes_the_table(tmp_path, log, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["protect", str(log), "-m", "tally", "-o", "out.csv", "--dry-run"])
    assert done.exit_code == 0
    assert "would release a table of 17 lines, from 72 records" in done.stderr
    qc.write(qc.read(log), "log.csv")
    done = CliRunner().invoke(main, ["protect", "log.csv", "-m", "tally", "--quiet"])
    assert done.stdout.splitlines()[:2] == ["query,count", "cheap flights,12"]


def test_noise_of_the_operating_system_is_never_called_reproducible(tmp_path, log, monkeypatch):
    plain = Tally.traits
    monkeypatch.setattr(Tally, "traits", lambda settings: replace(plain(settings), system_noise=True))
    for more in ({}, {"seed": 1}, {"secret_file": tmp_path / "secret"}):
        told = qc.protect(log, "tally", output=tmp_path / "out.csv", **more).certificate["randomness"]
        assert (told["reproducible"], told["publishable"]) == (False, "seed" not in more)
        assert told["noise"] == "operating system"
    found = qc.verify(tmp_path / "out.csv", original=log, secret_file=tmp_path / "secret")
    assert found.holds
    reasons = {line["check"]: line["detail"] for line in found.not_checkable}
    reason = reasons["the secret gives the same records under the same labels"]
    assert reason == "its noise is the operating system's, which no secret can repeat"


def test_a_log_keeps_what_it_said_about_randomness(log):
    told = qc.protect(log, "rules", seed=1).certificate
    assert told["randomness"] == {"secret": "seed", "reproducible": True, "publishable": False}
    assert "table" not in told["release"]

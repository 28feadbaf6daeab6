"""`protect`, `verify` and `measure` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from querycloak import formats
from querycloak.cli import main
from querycloak.registry import MEASURES


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def log(tmp_path, small_log):
    formats.write(small_log, tmp_path / "log.parquet")
    return "log.parquet"


@pytest.fixture
def released(run, log):
    done = run(
        "protect",
        log,
        "-m",
        "rules",
        "-m",
        "frequent-only",
        "-s",
        "frequent-only.k=5",
        "-o",
        "out.parquet",
        "--truth",
        "t.parquet",
        "--seed",
        1,
    )
    assert done.exit_code == 0, done.stderr
    return Path("out.parquet")


def _verify(run, *more):
    done = run("verify", "out.parquet", "--json", *more)
    return done.exit_code, json.loads(done.stdout)


def test_protect_says_what_it_did(run, log):
    done = run("protect", log, "-m", "frequent-only", "-s", "k=5", "-o", "out.parquet", "--explain")
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "released 60 of 72 records",
        "  frequent-only: every released query was asked by at least 5 users "
        "before its first row was released; the user column is empty [passed]",
        "withheld 12 records; searches by reason:",
        "  frequent-only: asked by too few people: 12",
        "wrote out.parquet.certificate.json",
        "wrote out.parquet.certificate.private.json",
    ]


def test_quiet_says_nothing_and_json_prints_one_object(run, log):
    quiet = run("protect", log, "-m", "rules", "-o", "a.parquet", "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    spoken = run("protect", log, "-m", "rules", "-o", "b.parquet", "--json")
    assert spoken.stderr == ""
    assert json.loads(spoken.stdout)["released"] == 72


def test_a_release_can_go_to_standard_output(run, small_log, tmp_path):
    formats.write(small_log.drop("category"), tmp_path / "log.csv")
    done = run("protect", "log.csv", "-m", "frequent-only", "-s", "k=12")
    assert done.exit_code == 0
    assert done.stdout.count("\n") == 61
    assert "rare thing" not in done.stdout + done.stderr


def test_verify_needs_the_truth_for_some_checks(run, released):
    code, alone = _verify(run)
    assert code == 0
    assert alone["broken"] == []
    assert {line["check"] for line in alone["checked"]} >= {
        "the release has the SHA-256 of its certificate",
        "each released query stands in at least 5 rows",
    }
    code, full = _verify(run, "--original", "log.parquet", "--truth", "t.parquet")
    assert (code, full["not_checkable"], full["broken"]) == (0, [], [])


def _tamper(query: str) -> None:
    frame = pl.read_parquet("out.parquet")
    changed = pl.when(pl.int_range(pl.len()) == 7).then(pl.lit(query)).otherwise("query")
    frame.with_columns(changed.alias("query")).write_parquet("out.parquet")


def _fix_up_the_hash() -> None:
    path = Path("out.parquet.certificate.json")
    certificate = json.loads(path.read_text())
    certificate["release"]["sha256"] = formats.sha256("out.parquet")
    path.write_text(json.dumps(certificate))


@pytest.mark.parametrize("evidence", [(), ("--original", "log.parquet", "--truth", "t.parquet")])
def test_a_changed_cell_is_found_even_with_the_hash_fixed_up(run, released, evidence):
    _tamper("planted secret")
    code, found = _verify(run, *evidence)
    assert code == 4
    assert found["broken"][0]["about"] == "integrity"
    _fix_up_the_hash()
    done = run("verify", "out.parquet", *evidence)
    assert done.exit_code == 4
    assert (
        "frequent-only: each released query stands in at least 5 rows (1 row of the release, the first: 7"
        in done.stderr
    )
    assert "planted secret" not in done.stdout + done.stderr


def test_a_swapped_row_is_found_with_the_truth(run, released):
    _tamper("news")
    _fix_up_the_hash()
    assert _verify(run)[0] == 0  # nothing in the release itself can show this
    code, found = _verify(run, "--original", "log.parquet", "--truth", "t.parquet")
    assert code == 4
    assert "every released query is the one that was asked" in {line["check"] for line in found["broken"]}


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["-m", "nothing"], 2, "error: no protection method is called `nothing`"),
        (["-m", "frequent-onl"], 2, "hint: did you mean `frequent-only`?"),
        (["-m", "rules", "-s", "digit=no"], 2, "hint: did you mean `digits`?"),
        (["-m", "rules", "-s", "digits"], 2, "`-s` takes NAME=VALUE"),
        (["-m", "frequent-only", "-s", "k=1"], 2, "frequent-only: `k` must be int, at least 2; got 1"),
        (["-m", "rules", "--format", "xls"], 2, "no format is called `xls`"),
        (["-m", "rules", "--map", "user=nobody"], 3, "nobody"),
    ],
)
def test_errors_have_one_shape_and_a_status(run, log, arguments, status, message):
    done = run("protect", log, *arguments, "-o", "x.parquet")
    assert done.exit_code == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("x.parquet").exists()


def test_a_missing_or_unreadable_log_is_a_clear_error(run):
    Path("junk.parquet").write_bytes(b"PAR1 not really")
    for name, status in (("absent.tsv", 2), ("junk.parquet", 3)):
        done = run("protect", name, "-m", "rules", "-o", "x.parquet")
        assert done.exit_code in (status, 3)
        assert done.stderr.startswith("error: ")


def test_an_unforeseen_error_shows_no_data(run, log, monkeypatch):
    def burst(*_):
        raise RuntimeError("secret query of ann")

    monkeypatch.setattr("querycloak.api.verbs.make_release", burst)
    done = run("protect", log, "-m", "rules", "-o", "x.parquet")
    assert done.exit_code == 1
    assert "RuntimeError" in done.stderr
    assert "secret" not in done.stderr.replace("may hold data", "")


def test_bad_rows_are_counted_by_reason_and_strict_stops_at_the_first(run):
    good = "u{0}\tnews\t2006-03-01 10:00:{0:02d}\t\t\n"
    lines = ["AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n", *(good.format(n) for n in range(20))]
    lines[3:3] = ["only two\tfields\n", "u\tq\tnot a time\t\t\n", "u\tq\0\t2006-03-01 10:00:00\t\t\n"]
    Path("log.tsv").write_bytes("".join(lines).encode() + b"u\t\xff\xfe\t2006-03-01 10:00:00\t\t\n")
    done = run("protect", "log.tsv", "-m", "frequent-only", "-o", "out.tsv")
    assert done.exit_code == 0
    for reason in ("too few fields", "unreadable time", "NUL byte", "not UTF-8"):
        assert f"skipped 1 bad row: {reason}" in done.stderr
    assert len(Path("out.tsv").read_text().splitlines()) == 21
    strict = run("protect", "log.tsv", "-m", "frequent-only", "-o", "strict.tsv", "--strict")
    assert strict.exit_code == 3
    assert "row 2" in strict.stderr
    assert not Path("strict.tsv").exists()


def test_unnamed_columns_stay_empty_and_named_ones_pass(run, small_log, tmp_path):
    frame = small_log.with_columns(session=pl.lit("s-17"), site=pl.lit("shop")).drop("row")
    frame.write_csv(tmp_path / "log.csv")
    done = run("protect", "log.csv", "-m", "frequent-only", "-o", "out.csv", "--keep", "site")
    assert "emptied what may carry identity (1 column): session" in done.stderr
    out = pl.read_csv("out.csv", infer_schema=False)
    assert out.columns == frame.columns
    assert out["session"].null_count() == out.height
    assert out["site"].unique().to_list() == ["shop"]


def test_measure_prints_every_measure(run, released):
    done = run("measure", "out.parquet", "--original", "log.parquet", "--json")
    found = json.loads(done.stdout)["measures"]
    assert list(found) == MEASURES.names()
    assert found["release_rate"] == pytest.approx(60 / 72)
    one = run("measure", "out.parquet", "--original", "log.parquet", "-u", "release_rate")
    assert one.stdout == "release_rate: 0.8333\n"


@pytest.mark.sign
def test_a_signed_certificate_is_checked_with_the_public_key(run, log):
    from cryptography.hazmat.primitives import serialization as how
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    Path("key.pem").write_bytes(
        key.private_bytes(how.Encoding.PEM, how.PrivateFormat.PKCS8, how.NoEncryption())
    )
    public = key.public_key().public_bytes(how.Encoding.PEM, how.PublicFormat.SubjectPublicKeyInfo)
    Path("key.pub").write_bytes(public)
    assert run("protect", log, "-m", "rules", "-o", "out.parquet", "--sign", "key.pem").exit_code == 0
    assert _verify(run, "--public-key", "key.pub")[0] == 0
    path = Path("out.parquet.certificate.json")
    path.write_text(path.read_text().replace("person's name", "person's shoe"))
    assert _verify(run, "--public-key", "key.pub")[0] == 4

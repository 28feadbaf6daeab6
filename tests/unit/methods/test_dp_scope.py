"""What a certificate with an ε must not be given for, and what must not be spent or said by mistake."""

from __future__ import annotations

import json

import polars as pl
import pytest

import querycloak as qc
from querycloak.errors import ParameterError, Refused, UsageError
from querycloak.log import Log
from querycloak.methods.dp_semantic import DpSemantic

ROWS = [("ann", "dog"), ("bob", "cat"), ("cid", "hammer"), ("dan", "dog"), ("eve", "asthma")]


def log_of(*rows, **more):
    frame = pl.DataFrame(rows or ROWS, schema=["user", "query"], orient="row")
    frame = frame.with_row_index("row").cast({"row": pl.Int64})
    times = pl.Series([60_000_000 * n for n in range(frame.height)]).cast(pl.Datetime("us", "UTC"))
    return Log(frame.with_columns(times.alias("time"), **more))


def facts_of(release):
    return release.certificate["methods"][0]["facts"]


def test_a_later_method_does_not_go_by_clicked_pages():
    """`km` counts words of pages, but those that `dp-semantic` empties are not there to be counted."""
    pages = [
        pl.Series("url", [f"http://{site}.example"] * 4 + [other])
        for site, other in (("a", "http://b.example"),)
    ]
    same = pl.Series("url", ["http://a.example"] * 5)
    found = [
        qc.protect(
            log_of(*[(name, "dog") for name in "abcde"], url=page),
            "dp-semantic",
            "km",
            seed=1,
            **{"km.k": 2, "km.urls": "terms"},
        ).log.frame
        for page in (same, *pages)
    ]
    assert found[0].equals(found[1])


def test_a_kept_column_is_refused_beside_an_epsilon():
    with pytest.raises(Refused, match="--keep"):
        qc.protect(log_of(copy=pl.Series([q for _, q in ROWS])), "dp-semantic", keep=["copy"])


def test_a_file_that_cannot_be_written_spends_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    named = {"source": "s", "state": tmp_path / "state", "epsilon": 4.0, "budget": 4.0}
    with pytest.raises(UsageError):
        qc.protect(log_of(), "dp-semantic", truth=tmp_path / "none" / "t.parquet", **named)
    assert len(qc.protect(log_of(), "dp-semantic", **named).log) == 5


@pytest.mark.sign
def test_a_wrong_key_enters_nothing_into_the_ledger(tmp_path):
    from querycloak.engines.pipeline import parse_stages
    from querycloak.engines.release import ReleaseJob, make_release

    qc.write(log_of(), tmp_path / "log.csv")
    stages = parse_stages(["dp-semantic"], {"budget": "5"})
    request = ReleaseJob(
        str(tmp_path / "log.csv"),
        str(tmp_path / "out.csv"),
        stages,
        source="s",
        state=tmp_path / "state",
        sign=tmp_path / "no.pem",
    )
    with pytest.raises(UsageError, match="signing key"):
        make_release(request)
    assert not (tmp_path / "state").exists()


def test_what_promises_nothing_spends_all(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    named = {"source": "s", "state": tmp_path / "state"}
    qc.protect(log_of(), "dp-semantic", rebuild="paper", **named)
    assert (
        facts_of(qc.protect(log_of(), "dp-semantic", epsilon=1.0, **named))["spent_by_anyone_at_most"] is None
    )
    with pytest.raises(Refused, match="as little as 0 left"):
        qc.protect(log_of(), "dp-semantic", epsilon=1.0, budget=100.0, **named)


def test_a_missing_book_makes_no_sum(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    qc.protect(log_of(), "dp-semantic", source="s", state=tmp_path / "one")
    other = {"source": "s", "state": tmp_path / "two"}
    for _ in range(2):
        facts = facts_of(qc.protect(log_of(), "dp-semantic", **other))
        assert facts["spent_by_anyone_at_most"] is None
        assert facts["delta_of_all_releases"] is None


@pytest.mark.parametrize(("rebuild", "bound"), [("none", True), ("form", False), ("paper", False)])
def test_a_ceiling_is_printed_only_where_it_is_promised(rebuild, bound):
    log = log_of()
    release = qc.protect(log, "dp-semantic", rebuild=rebuild, seed=1)
    (finding,) = qc.attack(release, log, "bayes-concept")
    assert (finding.bound is not None) == bound


def test_the_unit_is_what_epsilon_is_for():
    assert facts_of(qc.protect(log_of(), "dp-semantic", seed=1))["unit"] == "history"
    assert facts_of(qc.protect(log_of(), "dp-semantic", seed=1, per="query"))["unit"] == "phrase"


@pytest.mark.parametrize(
    "settings",
    [
        {"max_queries": 10**30},
        {"budget": float("inf")},
        {"epsilon": 0.001, "max_queries": 10**8},
        {"domain_topics": "paper-4"},
    ],
    ids=str,
)
def test_settings_that_cannot_be_kept_are_refused(settings):
    with pytest.raises(ParameterError):
        DpSemantic.Settings(**settings)


def test_a_damaged_book_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    named = {"source": "s", "state": tmp_path / "state"}
    qc.protect(log_of(), "dp-semantic", **named)
    (book,) = (tmp_path / "state").glob("*.budget.parquet")
    pl.read_parquet(book).drop_nulls("user").write_parquet(book)
    with pytest.raises(Refused, match="was put back or changed"):
        qc.protect(log_of(), "dp-semantic", **named)


def test_a_certificate_is_plain_json():
    release = qc.protect(log_of(), "dp-semantic", seed=1)
    again = json.loads(json.dumps(release.certificate, allow_nan=False))
    assert again["methods"] == release.certificate["methods"]

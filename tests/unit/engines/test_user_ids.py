"""White space and Unicode variants of a user id are one user; the ground truth keeps the id of the log."""

from __future__ import annotations

import json

import polars as pl
import pytest

import querycloak as qc
from querycloak.engines.user_ids import spelling

IDS = {
    "ann": "ann",
    " ann": "ann",
    "ann\u00a0": "ann",
    "Ann": "Ann",
    "bob@made-up.example": "bob@made-up.example",
    "Bob@Made-up.Example ": "bob@made-up.example",
    "caf\u00e9": "caf\u00e9",
    "cafe\u0301": "caf\u00e9",
    "\uff11\uff12": "12",
    "12": "12",
    "a b": "a b",
}
#: Ids less users: two of Ann's, one each of Bob's, the café's and the number.
JOINED = 5


def frame(ids):
    rows = [
        {"user": user, "query": "same words", "time": f"2026-01-01 10:00:{n:02d}"}
        for n, user in enumerate(ids)
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize(("user", "expected"), IDS.items())
def test_ids_have_one_spelling(user, expected):
    assert spelling(user) == expected == spelling(expected)


@pytest.mark.parametrize("piece_rows", [None, 3])
def test_variants_of_an_id_are_one_user_and_the_truth_keeps_the_raw_id(tmp_path, piece_rows):
    log, truth, out = tmp_path / "log.jsonl", tmp_path / "truth.parquet", tmp_path / "out.csv"
    frame(IDS).write_ndjson(log)
    release = qc.protect(log, "rules", output=out, truth=truth, piece_rows=piece_rows)
    assert release.log.frame["user"].n_unique() == len(set(IDS.values())) == len(IDS) - JOINED
    known = pl.read_parquet(truth).sort("original_row")
    assert known["original_user"].to_list() == list(IDS.values())
    assert known["raw_user"].to_list() == list(IDS)
    assert release.report.joined_users == JOINED
    private = json.loads((tmp_path / "out.csv.certificate.private.json").read_text())
    assert private["joined_users"] == JOINED
    assert qc.verify(out, original=log, truth=truth).holds
    qc.attack(out, log, "link-frequent", truth=truth)


def test_variants_do_not_count_as_several_users_of_a_query():
    log = frame([" ann", "ann", "ann ", "bob"])
    assert qc.protect(log, "frequent-only", k=3).report.released == 0
    assert qc.protect(log, "frequent-only", k=2).report.released == 4


def test_an_id_that_is_only_blank_is_none():
    release = qc.protect(frame(["ann", "\u00a0 ", "bob"]), "rules")
    assert release.report.skipped == {"no user": 1}
    assert (release.report.released, release.report.rows_read) == (2, 3)


def test_plain_ids_are_left_alone():
    release = qc.protect(frame(["ann", "Ann", "7"]), "rules")
    assert "raw_user" not in release.truth.columns
    assert release.report.joined_users == 0

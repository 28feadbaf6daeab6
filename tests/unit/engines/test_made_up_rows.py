"""Rows that a method makes up: spelled from the batch alone, marked in the truth, allowed to no other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import querycloak as qc
from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import LINEAGE
from querycloak.errors import BrokenPromise
from querycloak.methods.rules import Rules
from querycloak.registry import METHODS
from tests.unit.methods.made_dp import made

PEOPLE = [(f"u{n}", ("dog", "cat")[n % 2]) for n in range(8)]
MADE = ("microagg-semantic", "microagg-plain")
NOTHING_MADE_UP, NOTHING_TWICE, _, QUERIES_UNCHANGED = LINEAGE


class Inventing(Rules):
    """Shows one row more than it was given. Guarantee: none. Limits: anything."""

    name = "inventing"

    def push(self, batch):
        out = super().push(batch)
        return out + out[:1].replace(row=np.array([-1])) if len(out) else out


class Honest(Inventing):
    """Says that it does."""

    name = "honest"

    @classmethod
    def traits(cls, settings):
        return replace(super().traits(settings), creates_rows=True)


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setattr(METHODS, "added", {**METHODS.added, "inventing": Inventing, "honest": Honest})


@pytest.mark.parametrize("method", MADE)
@pytest.mark.parametrize("labels", ["keep", "fresh"])
def test_the_truth_says_that_a_row_is_made_up_and_whose_label_it_has(method, labels):
    log = made(*PEOPLE)
    release = qc.protect(log, method, k=3, labels=labels, seed=1, source="test")
    truth, shown = release.truth, release.log.frame
    assert truth["original_row"].null_count() == truth.height == shown.height > 0
    assert truth["made_up"].all()
    assert (truth["released_after"] == len(log)).all()
    assert set(truth["original_user"]) == {user for user, _ in PEOPLE}
    if labels == "keep":
        assert truth["original_user"].to_list() == shown["user"].to_list()
    else:
        assert truth["original_label"].to_list() == shown["user"].to_list()
        assert truth["label_user"].to_list() == truth["original_user"].to_list()
        assert not set(shown["user"]) & {user for user, _ in PEOPLE}
        pairs = truth.select("original_user", "original_label").unique()
        assert pairs.height == len(PEOPLE)


def test_columns_that_no_batch_has_are_empty(tmp_path):
    """A log's further columns are not released, and canonical ones keep their types."""
    hours = pl.Series(range(8)).cast(pl.Datetime("us", "UTC"))
    log = made(
        *PEOPLE, time=hours, rank=pl.lit(3, pl.Int64), url=pl.lit("http://a.example"), category=pl.lit("A")
    )
    release = qc.protect(log, "microagg-plain", k=3, seed=1, output=tmp_path / "out.parquet")
    assert release.log.frame.drop("row").schema == log.frame.drop("row").schema
    for name in ("rank", "url", "category"):
        assert release.log.frame[name].null_count() == len(release.log)
    written = pl.read_parquet(tmp_path / "out.parquet")
    assert set(written.columns) == set(log.frame.columns) - {"row"}


def test_real_and_made_up_rows_leave_together():
    release = qc.protect(made(*PEOPLE), "honest", seed=1, labels="keep", source="test")
    truth, shown = release.truth, release.log.frame
    assert shown.height == len(PEOPLE) + 1
    assert truth["made_up"].sum() == 1
    assert truth.filter(~pl.col("made_up"))["original_row"].sort().to_list() == list(range(8))
    beside = pl.concat(
        [shown.select("user", "query"), truth.select("original_user", "made_up", "original_row")],
        how="horizontal",
    )
    assert (beside["user"] == beside["original_user"]).all()
    for user, query, _, is_made, row in beside.iter_rows():
        assert (row is None) == is_made
        assert (user, query) in PEOPLE
        assert is_made or PEOPLE[row] == (user, query)


def test_a_method_that_does_not_say_so_is_caught():
    with pytest.raises(BrokenPromise, match="come from no row of the original"):
        qc.protect(made(*PEOPLE), "inventing", seed=1)


def test_other_methods_truth_has_no_such_column():
    assert "made_up" not in qc.protect(made(*PEOPLE), "rules", seed=1).truth.columns


@pytest.mark.parametrize(
    ("rows", "makes_rows", "verdict"),
    [
        ([0, 1], False, "kept"),
        ([0, None], False, "broken"),
        ([0, None], True, "kept"),
        ([None, None], True, "not applicable"),  # nothing came from anywhere
        ([0, 7], True, "broken"),  # a row that the original does not have is no made-up row
        ([0, -1], True, "broken"),
    ],
)
def test_lineage_takes_no_row_for_made_up_only_if_a_method_makes_rows(rows, makes_rows, verdict):
    evidence = lineage(rows, makes_rows)
    assert NOTHING_MADE_UP(evidence).verdict == verdict
    assert NOTHING_TWICE(evidence).verdict == "kept"


def test_made_up_rows_do_not_hide_that_one_is_shown_twice():
    assert NOTHING_TWICE(lineage([1, None, 1], True)).verdict == "broken"


@pytest.mark.parametrize(
    ("rows", "makes_rows", "verdict"),
    [
        ([0, None], True, "kept"),
        ([0, None], False, "broken"),
        ([1, None], True, "broken"),  # row 1 asked for another thing than the first row shows
        ([None, None], True, "kept"),
    ],
)
def test_nobody_asked_for_a_made_up_row_but_others_must_show_what_was_asked(rows, makes_rows, verdict):
    assert QUERIES_UNCHANGED(lineage(rows, makes_rows)).verdict == verdict
    assert QUERIES_UNCHANGED(lineage(rows, makes_rows, rewritten=True)).verdict == "not applicable"


def lineage(rows, makes_rows, **more):
    users, queries = ["u", "v", "u"], ["dog", "cat", "cat"]
    release = pl.LazyFrame(
        {"released_row": range(len(rows)), "user": users[: len(rows)], "query": queries[: len(rows)]}
    )
    truth = pl.LazyFrame(
        {
            "released_row": range(len(rows)),
            "original_row": pl.Series(rows, dtype=pl.Int64),
            "original_user": users[: len(rows)],
            "released_after": [2] * len(rows),
        }
    )
    original = pl.LazyFrame({"row": [0, 1], "user": ["u", "v"], "query": ["dog", "cat"]})
    return Evidence(release, original, truth, makes_rows=makes_rows, **more)

"""No error shows a cell of a Spark DataFrame, though Spark's own messages quote what they could not read."""

from __future__ import annotations

import gc
import warnings

import polars as pl
import pytest
from click.testing import CliRunner

import querycloak as qc
from querycloak.cli import main
from querycloak.errors import QueryCloakError
from tests.cli.test_planted_secrets import QUERY, TABLES, TIME, URL, USER, assert_clean, logs, raised_by


def chain(error: BaseException | None) -> str:
    """Return the texts of an error and of all its causes, also of those that a traceback leaves out."""
    said = []
    while error is not None:
        said.append(str(error))
        error = error.__cause__
    return "\n".join(said)


@pytest.fixture
def tables(spark):
    from pyspark.sql import functions as F

    rows = spark.createDataFrame(
        [(0, USER, QUERY, TIME, URL)], "row long, user string, query string, t string, url string"
    )
    timed = rows.withColumn("time", F.to_timestamp("t"))
    return {
        "no columns": rows.selectExpr("row", f"user AS `{USER}`", f"query AS `{QUERY}`"),
        "objects": rows.selectExpr(
            "row", "user", "query", f"named_struct('{USER.replace('4711', '')}', query) AS time"
        ),
        "object users": timed.selectExpr("row", "named_struct('zzperson', user) AS user", "query", "time"),
        "bad time": rows.selectExpr("row", "user", "query", "query AS time"),
        "bad rank": timed.selectExpr("row", "user", "query", "time", "url AS rank"),
        "failing cast": timed.selectExpr("row", "user", "query", "time", "CAST(query AS int) AS rank"),
        "failing row": timed.withColumn("query", F.expr("raise_error(concat(user, query, url))")),
        "twice": timed.union(timed),
        "no row numbers": timed.drop("row"),
        "text row numbers": timed.withColumn("row", F.col("query")),
        "same but for case": timed.selectExpr("*", f"url AS `{QUERY}`", f"url AS `{QUERY.upper()}`"),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets of failed collects
def test_no_exception_shows_a_cell(tables, capfd):
    failed = set()
    for name, table in tables.items():
        for options in ({}, {"strict": True}, {"keep": ["shelf"]}, {"mapping": {"user": "client"}}):

            def call(table=table, options=options):
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    qc.spark.protect(table, "rules", seed=1, **options).toArrow()
                assert_clean(" ".join(str(one.message) for one in told))

            error = raised_by(call)
            assert_clean(chain(error))
            if isinstance(error, QueryCloakError):
                failed.add(name)
    gc.collect()
    assert_clean("".join(capfd.readouterr()))
    assert {"no columns", "objects", "bad time", "twice", "no row numbers"} <= failed


@pytest.mark.parametrize(
    "name", ["faulty.csv", "faulty.jsonl", "headless.csv", "types.parquet", "times.parquet"]
)
def test_no_command_on_spark_shows_a_cell(spark, name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(logs()[name]) if name in logs() else TABLES[name]().write_parquet(name)
    for options in ((), ("--strict",), ("--allow-bad",)):
        asked = ("protect", name, "-m", "rules", "-o", "out.csv", "--engine", "spark", "--master", "local[2]")
        found = CliRunner().invoke(main, [*asked, *options])
        assert_clean(found.output + "".join(capfd.readouterr()))
        assert found.exit_code in (0, 3), found.output


def test_files_of_workers_are_private(spark, tmp_path, monkeypatch):
    """The folder that Spark writes to is for the owner alone, and gone afterwards."""
    from querycloak.spark import SparkEngine

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    seen = []
    outcome = SparkEngine.outcome

    def look(self):
        seen.append((self._folder.parent, self._folder.stat().st_mode & 0o777))
        return outcome(self)

    monkeypatch.setattr(SparkEngine, "outcome", look)
    log = pl.DataFrame({"user": ["a", "b"], "query": ["x", "y"], "time": [TIME, TIME]})
    qc.protect(log, "rules", engine="spark", master="local[2]")
    assert seen == [(tmp_path, 0o700)]
    assert list(tmp_path.glob("querycloak-*")) == []

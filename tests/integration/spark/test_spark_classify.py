"""Classification on Spark gives the local answer, row for row, on a table and on a stream."""

from __future__ import annotations

import polars as pl
import pytest

import querycloak as qc
from querycloak.errors import DataError, UnknownName
from querycloak.spark.dataframe import classify
from tests.integration.spark.streams import collected, source, write_pieces
from tests.support.logs import made_up


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    made = made_up(30, seed=4).frame
    odd = pl.DataFrame({"query": [None, "", "zzqx qqzy", "München wetter"]})
    return pl.concat([made, odd], how="diagonal").with_columns(row=pl.int_range(pl.len()), extra=pl.lit(1.5))


@pytest.fixture(scope="module")
def answer(log) -> pl.DataFrame:
    return qc.classify(qc.Log(log)).frame


def test_a_table_is_classified_as_on_one_machine(spark, log, answer, tmp_path):
    log.with_columns(category=pl.lit("old"), confidence=0.0).write_parquet(tmp_path / "log.parquet")
    found = collected(classify(spark.read.parquet(str(tmp_path / "log.parquet"))))
    assert found.columns == answer.columns
    assert found.cast(dict(answer.schema)).sort("row").equals(answer.sort("row"))
    assert 0 < answer["category"].null_count() < answer.height


def test_a_stream_is_classified_too(spark, log, answer, tmp_path):
    timed = log.filter(pl.col("time").is_not_null()).drop("extra").sort("time")
    folder = write_pieces(timed.with_columns(category=pl.lit("old")), tmp_path / "in", 2)
    query = classify(source(spark, folder)).writeStream.format("memory").queryName("classified")
    started = (
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )
    assert started.awaitTermination(240)
    wanted = answer.filter(pl.col("time").is_not_null()).drop("extra").sort("row")
    found = collected(spark.table("classified")).select(wanted.columns).cast(dict(wanted.schema))
    assert found.sort("row").equals(wanted)


def test_what_cannot_be_classified_is_told_before_any_work(spark, log):
    table = spark.range(1).selectExpr("id AS row", "'x' AS text")
    with pytest.raises(DataError, match="no column `query`"):
        classify(table)
    with pytest.raises(UnknownName):
        classify(table.withColumnRenamed("text", "query"), classifier="lexicall")

"""Spark releases what the local engine does: of DataFrames each record, of files each byte."""

from __future__ import annotations

import json
import stat
import warnings
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

import querycloak as qc
from querycloak import keys
from querycloak.cli import main
from querycloak.dictionary import Dictionaries
from querycloak.engines.pipeline import Stage
from querycloak.errors import DataError, ParameterError, QueryCloakError, Refused, UsageError
from querycloak.formats import validation
from querycloak.log import Batch
from querycloak.registry import METHODS
from querycloak.spark import batch, time_slices
from tests.support import logs


def by_key() -> list[tuple[str, dict[str, object]]]:
    """All examples of all methods that can be split by a key, but for those that draw noise of their own."""
    found = []
    for name in METHODS.names():
        for settings in METHODS.get(name).examples():
            method = Stage(name, settings).build(bytes(32), 0, texts := Dictionaries())
            if (
                method.partition_key(Batch.empty(texts)) is not None
                and not method.traits(settings).system_noise
            ):
                found.append((name, settings.as_dict()))
    return found


@pytest.fixture(scope="module")
def log():
    """A made-up log in the order of its users, as AOL's files are: so the order of times is another one."""
    made = logs.made_up(60, seed=5, categories=True)
    frame = made.frame.sort("user", "time", maintain_order=True).drop("row").with_row_index("row")
    return made.with_frame(frame.cast({"row": pl.Int64}))


@pytest.fixture(scope="module")
def table(spark, log, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    log.frame.write_parquet(path)
    return spark.read.parquet(str(path))


def local(log, methods, settings) -> pl.DataFrame:
    release = qc.protect(log, *methods, seed=9, **settings)
    both = [release.log.frame.drop("row"), release.truth.drop("released_row")]
    return pl.concat(both, how="horizontal").sort("original_row")


def on_spark(table, methods, settings, like: pl.DataFrame, **options) -> pl.DataFrame:
    found = qc.spark.protect(table, *methods, seed=9, truth=True, parts=3, **options, **settings)
    frame = pl.from_arrow(found.toArrow())
    assert isinstance(frame, pl.DataFrame)
    assert set(like.columns) == set(frame.columns)
    return frame.select(like.columns).cast(like.schema).sort("original_row")


@pytest.mark.parametrize(("method", "settings"), by_key(), ids=lambda value: str(value)[:60])
def test_every_method_with_a_key_releases_what_one_machine_does(method, settings, log, table):
    expected = local(log, [method], settings)
    assert on_spark(table, [method], settings, expected).equals(expected)
    assert expected.height or method == "z-anonymity"  # its example is for smaller logs


CHAINS = [
    (["rules", "cohort"], {"k": 3, "cohort.labels": "fresh"}),
    (["rules", "frequent-only"], {"k": 2}),
    (["z-anonymity", "swap"], {"z": 2, "window": 10**7, "generalise": False, "k": 2}),
]


@pytest.mark.parametrize(("methods", "settings"), CHAINS, ids=["cohort", "frequent", "swap"])
def test_one_method_after_the_other(methods, settings, log, table):
    expected = local(log, methods, settings)
    assert on_spark(table, methods, settings, expected).equals(expected)


def test_slices_of_time_make_no_difference(log, table, monkeypatch):
    assert log.frame.height > 1000
    monkeypatch.setitem(batch.start.__kwdefaults__, "slice_rows", 100)
    expected = local(log, ["cohort"], {"k": 4})
    assert on_spark(table, ["cohort"], {"k": 4}, expected).equals(expected)


def test_a_log_without_times(log, table):
    expected = local(log.with_frame(log.frame.drop("time")), ["cohort"], {"k": 4})
    assert on_spark(table.drop("time"), ["cohort"], {"k": 4}, expected).equals(expected)


def test_times_of_no_zone_are_utc_whatever_the_session_thinks(spark, log, tmp_path):
    path = tmp_path / "bare.parquet"
    log.frame.with_columns(pl.col("time").dt.replace_time_zone(None)).write_parquet(path)
    expected = local(log, ["cohort"], {"k": 4})
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        bare = spark.read.parquet(str(path))
        assert dict(bare.dtypes)["time"] == "timestamp_ntz"
        found = on_spark(bare, ["cohort"], {"k": 4}, expected)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found.equals(expected)


def test_rows_of_one_parquet_file_need_no_numbers(spark, log, tmp_path):
    path = tmp_path / "bare.parquet"
    log.frame.drop("row").write_parquet(path)
    expected = local(log, ["swap"], {"k": 3})
    assert on_spark(spark.read.parquet(str(path)), ["swap"], {"k": 3}, expected).equals(expected)


def test_rows_that_nothing_numbers_are_refused(spark):
    made_up = spark.range(9).selectExpr("CAST(id AS string) AS user", "'a' AS query")
    with pytest.raises(DataError, match="no column `row`"):
        qc.spark.protect(made_up, "cohort")


def test_two_rows_of_one_number_are_refused(table):
    with pytest.raises(DataError, match="two with the same"):
        qc.spark.protect(table.union(table.limit(1)), "cohort")


def test_rows_that_explode_or_a_join_made_of_one_are_refused(spark, log, tmp_path):
    """Those of a Parquet file are numbered by it: copies of a row have its number, and its draws."""
    from pyspark.sql import functions as F

    log.frame.drop("row").head(50).write_parquet(tmp_path / "bare.parquet")
    bare = spark.read.parquet(str(tmp_path / "bare.parquet"))
    more = F.explode(F.array("query", F.concat("query", F.lit(" b"))))
    for doubled in (bare.withColumn("query", more), bare.crossJoin(spark.range(2))):
        with pytest.raises(DataError, match="two with the same"):
            qc.spark.protect(doubled, "rules", seed=3)


NOTES = ("_note", "_head", "a `note", "kept_1")


def test_kept_columns_keep_their_names_and_values(spark, log, tmp_path):
    def noted(frame, row):
        return frame.with_columns((pl.lit(name) + pl.col(row).cast(pl.String)).alias(name) for name in NOTES)

    few = log.with_frame(log.frame.head(80))
    noted(few.frame, "row").write_parquet(tmp_path / "noted.parquet")
    table = spark.read.parquet(str(tmp_path / "noted.parquet"))
    expected = noted(local(few, ["rules"], {}), "original_row")
    assert expected.height
    assert on_spark(table, ["rules"], {}, expected, keep=list(NOTES)).equals(expected)


def test_columns_that_spark_would_take_for_one_are_refused(spark, log):
    few = spark.sql("SELECT 0L, 'u', 'q', 'a', 'b'")
    with pytest.raises(UsageError, match="`note` and `Note` differ only in case"):
        qc.spark.protect(few.toDF("row", "user", "query", "note", "Note"), "rules", keep=["note", "Note"])
    with pytest.raises(UsageError, match="`note` and `Note` differ only in case"):
        qc.spark.protect(few.toDF("row", "user", "query", "note", "Note"), "rules", keep=["note"])
    with pytest.raises(UsageError, match="`row` and `Row`"):
        qc.spark.protect(few.toDF("row", "user", "query", "Row", "y"), "rules", keep=["Row"])
    with pytest.raises(UsageError, match="called `_bad` cannot be kept"):
        qc.spark.protect(few.toDF("row", "user", "query", "_bad", "y"), "rules", keep=["_bad"])
    stream = (
        spark.readStream.format("rate")
        .load()
        .selectExpr("value AS row", "'u' AS user", "'q' AS query", "1 AS _x")
    )
    with pytest.raises(UsageError, match="called `_x` cannot be kept"):
        qc.spark.protect_stream(stream, "rules", seed=1, keep=["_x"])


def test_bytes_that_are_no_text_are_a_bad_row(spark):
    log = spark.sql(
        "SELECT row, 'u' AS user, CAST(query AS string) AS query, CAST(note AS string) AS note FROM"
        " VALUES (0L, X'ff41', X'78'), (1L, X'66', X'c3'), (2L, X'66', X'79') AS given(row, query, note)"
    )
    with pytest.warns(qc.spark.SkippedRows, match=r"^2 bad rows were left out: not UTF-8 \(2\)$"):
        found = qc.spark.protect(log, "rules", seed=3, keep=["note"])
    assert [(row["query"], row["note"]) for row in found.collect()] == [("f", "y")]


def test_slices_have_about_the_size_that_is_wanted(spark):
    from pyspark.sql import functions as F

    rows, size = 40_000, 100
    moment = F.xxhash64("id").bitwiseAND(F.lit((1 << 50) - 1)).alias("_moment")
    found = time_slices.cut(spark.range(rows).select(moment), rows, size)
    sizes = np.diff([*found.before, rows])
    assert sizes.sum() == rows
    assert sizes.max() <= 1.5 * size


@pytest.mark.parametrize("rows", [10**6, 10**8, 3 * 10**9])
def test_quantiles_are_as_exact_as_slices_need(rows):
    assert time_slices.error(rows, time_slices.SLICE) * rows <= time_slices.SLICE / 8 + 1
    assert time_slices.error(10**12, time_slices.SLICE) == 1e-5  # what Spark keeps for it stays small


def test_bad_rows_are_those_that_a_file_would_have(spark, tmp_path):
    bad = [
        {"user": None, "query": "a", "rank": "1"},
        {"user": "", "query": "a", "rank": "1"},
        {"user": "u", "query": "", "rank": "1"},
        {"user": "u", "query": "a\0b", "rank": "1"},
        {"user": "u", "query": "x" * (validation.QUERY_LIMIT + 1), "rank": "1"},
        {"user": "u", "query": "a", "rank": "one"},
        {"user": "u", "query": "a", "rank": "1", "time": None},
    ]
    good = [{"user": f"u{i % 3}", "query": "a", "rank": "2.0" if i % 2 else ""} for i in range(6)]
    moment = datetime(2006, 3, 1, tzinfo=UTC)
    records = [{"time": moment} | record for record in bad + good]
    frame = pl.DataFrame(
        records,
        schema={"user": pl.String, "query": pl.String, "rank": pl.String, "time": pl.Datetime("us", "UTC")},
    )
    path = tmp_path / "bad.parquet"
    frame.write_parquet(path)
    read = qc.read(path)
    with pytest.warns(qc.spark.SkippedRows) as told:
        found = qc.spark.protect(spark.read.parquet(str(path)), "cohort", k=2, shards=1, seed=1, truth=True)
    for reason, count in read.skipped.counts.items():
        assert f"{reason} ({count})" in str(told[0].message)
    assert sum(read.skipped.counts.values()) == len(bad)
    rows = {row["original_row"] for row in found.collect()}
    assert rows <= set(read.frame["row"].to_list())
    with pytest.raises(DataError, match="bad rows"):
        qc.spark.protect(spark.read.parquet(str(path)), "cohort", strict=True)


def test_a_method_that_needs_everything_at_once_says_so(table):
    with pytest.raises(Refused, match="`microagg-topic` needs all records in one place"):
        qc.spark.protect(table, "microagg-topic")
    with pytest.raises(Refused, match="must come last"):
        qc.spark.protect(table, "cohort", "frequent-only", **{"cohort.k": 2, "frequent-only.k": 2})


def test_noise_that_would_be_drawn_twice_is_refused(table):
    with pytest.raises(Refused, match="draws new noise"):
        qc.spark.protect(table, "dp-histogram", by="history")


def test_a_k_that_the_people_cannot_fill_is_refused(table):
    with pytest.raises(ParameterError, match="has only 60 users"):
        qc.spark.protect(table, "cohort", k=1000)


def test_a_category_of_a_third_of_all_records(spark, log, tmp_path):
    heavy = (
        pl.when(pl.col("row") % 3 == 0).then(pl.lit("Sports/Soccer")).otherwise("category").alias("category")
    )
    skewed = log.with_frame(log.frame.with_columns(heavy))
    expected = local(skewed, ["swap"], {"k": 3})
    skewed.frame.write_parquet(tmp_path / "skewed.parquet")
    table = spark.read.parquet(str(tmp_path / "skewed.parquet"))
    assert on_spark(table, ["swap"], {"k": 3}, expected).equals(expected)


def test_an_empty_log(table):
    assert qc.spark.protect(table.filter("false"), "cohort", seed=1).count() == 0


def test_no_secret_is_in_a_plan(table, capfd):
    secret = keys.Secret.from_seed(9)
    key = keys.release_key(secret, "", keys.release_id(secret, "", 0))
    qc.spark.protect(table, "cohort", k=3, seed=9).explain(extended=True)
    text = capfd.readouterr().out
    assert "MapInArrow" in text
    assert not any(shown in text for shown in (repr(key), key.hex(), repr(secret.value)))


# The command line


@pytest.fixture(scope="module")
def file(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "log.tsv"
    qc.write(log, str(path))
    return path


def run(*arguments) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    "how",
    [
        ["-m", "cohort", "-s", "k=4", "-s", "labels=fresh"],
        ["-m", "rules", "-m", "swap", "-s", "k=3", "-s", "level=auto", "-s", "rules.labels=keep"],
        ["-m", "km", "-s", "k=2", "-s", "window=week"],
    ],
    ids=["cohort", "rules-swap", "km"],
)
def test_the_files_are_the_same_to_the_last_byte(how, file, tmp_path, spark):
    for engine in ("local", "spark"):
        folder = tmp_path / engine
        folder.mkdir()
        status = run(
            "protect",
            file,
            *how,
            "-o",
            folder / "out.tsv",
            "--truth",
            folder / "t.parquet",
            "--seed",
            3,
            "--engine",
            engine,
            "--master",
            "local[2]",
            "--quiet",
        )
        assert status == 0
    a, b = tmp_path / "local", tmp_path / "spark"
    assert (a / "out.tsv").read_bytes() == (b / "out.tsv").read_bytes()
    assert pl.read_parquet(a / "t.parquet").equals(pl.read_parquet(b / "t.parquet"))
    assert stat.S_IMODE((b / "t.parquet").stat().st_mode) == 0o600
    certificates = [json.loads((folder / "out.tsv.certificate.json").read_text()) for folder in (a, b)]
    assert certificates[0] == certificates[1]
    private = [json.loads((f / "out.tsv.certificate.private.json").read_text()) for f in (a, b)]
    assert {**private[0], "created": 0} == {**private[1], "created": 0}
    assert sorted(p.name for p in b.iterdir()) == sorted(p.name for p in a.iterdir()), (
        "nothing is left behind"
    )


def test_a_file_with_columns_to_keep(tmp_path, spark, capsys):
    lines = [f"u{n},red shoes,2024-01-01T00:00:{n:02},n{n},N{n}" for n in range(10)]
    log = tmp_path / "log.csv"
    how = ["-m", "rules", "--seed", 3, "--quiet", "--master", "local[2]"]
    log.write_text("\n".join(["user,query,time,_note,other", *lines]) + "\n")
    for engine in ("local", "spark"):
        out = tmp_path / f"{engine}.csv"
        assert run("protect", log, *how, "--keep", "_note", "-o", out, "--engine", engine) == 0
    assert (tmp_path / "local.csv").read_bytes() == (tmp_path / "spark.csv").read_bytes()
    assert "n7" in (tmp_path / "spark.csv").read_text()
    log.write_text("\n".join(["user,query,time,note,Note", *lines]) + "\n")
    both = ["--keep", "note", "--keep", "Note"]
    assert run("protect", log, *how, *both, "-o", tmp_path / "x.csv", "--engine", "spark") == 2
    assert "`note` and `Note` differ only in case" in capsys.readouterr().err


def test_a_book_goes_on_with_either_engine(file, tmp_path, spark, monkeypatch):
    def release(engine, state, name):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"home-{state}"))
        return run(
            "protect",
            file,
            "-m",
            "cohort",
            "-s",
            "k=7",
            "-o",
            tmp_path / name,
            "--seed",
            3,
            "--engine",
            engine,
            "--state",
            tmp_path / state,
            "--source",
            name.split("-")[0],
            "--quiet",
        )

    assert release("local", "one", "x-1.tsv") == release("local", "one", "x-2.tsv") == 0
    assert release("spark", "two", "x-3.tsv") == release("spark", "two", "x-4.tsv") == 0
    books = [pl.read_parquet(next((tmp_path / state).glob("*.cohort.parquet"))) for state in ("one", "two")]
    assert books[0].sort("cohort", maintain_order=True).equals(books[1].sort("cohort", maintain_order=True))
    assert (tmp_path / "x-2.tsv").read_bytes() == (tmp_path / "x-4.tsv").read_bytes()


def test_a_table_of_each_person(file, tmp_path, spark):
    how = ["-m", "dp-histogram", "-s", "by=history", "-s", "bins=topics", "--seed", 3, "--quiet"]
    assert run("protect", file, *how, "-o", tmp_path / "a.csv") == 0
    assert run("protect", file, *how, "-o", tmp_path / "b.csv", "--engine", "spark") == 0
    a, b = (pl.read_csv(tmp_path / name) for name in ("a.csv", "b.csv"))
    assert a.drop("count").equals(b.drop("count")), "only the noise may differ"


def test_a_workers_refusal_is_told_as_if_it_happened_here(tmp_path, spark, capsys):
    log = logs.made_up(30, seed=1, categories=True)
    mailed = log.with_frame(log.frame.with_columns(user=pl.col("user") + "@example.org"))
    qc.write(mailed, str(tmp_path / "log.tsv"))
    status = run(
        "protect",
        tmp_path / "log.tsv",
        "-m",
        "cohort",
        "-s",
        "k=2",
        "-s",
        "labels=keep",
        "--source",
        "web",
        "--state",
        tmp_path / "state",
        "-o",
        tmp_path / "out.tsv",
        "--engine",
        "spark",
        "--quiet",
    )
    told = capsys.readouterr().err
    assert status == 2
    assert "look like e-mail or IP addresses" in told
    assert "labels=fresh" in told
    assert "Traceback" not in told
    assert "example.org" not in told
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.tsv", "state"]


def test_other_faults_of_spark_show_no_record():
    from pyspark.errors import PythonException

    from querycloak.spark.session import translate_errors

    with pytest.raises(QueryCloakError) as told, translate_errors():
        raise PythonException("a worker failed on row ('ann', 'a secret query')")
    assert "secret" not in str(told.value)
    assert told.value.exit_status == 3


def test_nothing_warns(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert qc.spark.protect(table, "cohort", k=3, seed=1).count()

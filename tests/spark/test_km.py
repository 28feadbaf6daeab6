"""`km` on Spark: record for record what one machine releases, and (k,m)-anonymous by the checker."""

from __future__ import annotations

import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from querycloak.dictionary import Texts
from querycloak.engines import local
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.replay import in_order
from querycloak.errors import ParameterError, Refused
from querycloak.guarantees import Evidence
from querycloak.keys import stage_key
from querycloak.methods.histories import split
from querycloak.methods.km import Km, is_km_anonymous

pytestmark = pytest.mark.spark

KEY = bytes(range(32))
START = datetime(2006, 3, 1, 22, tzinfo=UTC)
SCHEMA: Any = {
    "user": pl.String,
    "query": pl.String,
    "time": pl.Datetime("us", "UTC"),
    "rank": pl.Int64,
    "url": pl.String,
    "category": pl.String,
}
ORDER = ["_closing", "_seq", "_time", "_tie", "_head", "row"]


def made_up(seed: int, people: int = 12, records: int = 200, words: int = 50) -> pl.DataFrame:
    """A log that collides a lot: few words, clicks, sessions, days, and a word that most queries have."""
    rng = random.Random(seed)
    vocabulary = [f"w{n}" for n in range(words)]
    rows = []
    for _ in range(records):
        terms = [vocabulary[int(words * rng.random() ** 2)] for _ in range(rng.randrange(1, 4))]
        terms += ["The"] if rng.random() < 0.6 else []
        one = {
            "user": f"user {rng.randrange(people)}",
            "query": " ".join(terms) if rng.random() < 0.97 else "…",
            "time": START + timedelta(minutes=rng.randrange(0, 60 * 60)),
            "rank": rng.choice([None, 1, 2]),
            "url": rng.choice([None, "http://w1.example/w2", "http://w3.example"]),
            "category": rng.choice(["Sports/Soccer", "Home", None]),
        }
        rows += [one] * rng.choice([1, 1, 1, 2])  # several clicks of one search
    return pl.DataFrame(rows, schema=SCHEMA).with_row_index("row").cast({"row": pl.Int64})


def on_one_machine(log: pl.DataFrame, settings: Km.Settings) -> tuple[pl.DataFrame, Pipeline]:
    pipeline = Pipeline([Stage("km", settings)], KEY, Texts())
    parts = list(local.run(pipeline, [in_order(log, KEY)]))
    both = [pl.concat([part.frame, part.truth], how="horizontal") for part in parts]
    return pl.concat(both), pipeline


@pytest.fixture(autouse=True)
def a_folder_for_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def loaded(spark: Any, log: pl.DataFrame) -> Any:
    """Give a log as a DataFrame, by way of a file."""
    with tempfile.NamedTemporaryFile(suffix=".parquet", delete=False) as file:
        log.write_parquet(file)
    return spark.read.parquet(file.name)


def on_spark(spark: Any, log: pl.DataFrame, settings: Km.Settings, **more: Any) -> tuple[pl.DataFrame, Any]:
    from querycloak.engines.spark.km import protect_km

    key = stage_key(KEY, 0, "km", settings.as_dict())
    done = protect_km(loaded(spark, log), settings, key, release_key=KEY, **more)
    found = pl.DataFrame(pl.from_arrow(done.frame.orderBy(*ORDER).toArrow()))
    return found.drop("row", *ORDER[:-1]), done


#: Settings, and how many entries a worker may hold: so few that there are shards, and sometimes to the end.
SETTINGS = {
    "as it comes": (Km.Settings(k=2), 170),
    "triples in parts": (Km.Settings(k=3, m=3, history=3, labels="fresh"), 205),
    "four, by days": (Km.Settings(k=2, m=4, window="day", target="users"), 140),
    "sessions": (Km.Settings(k=2, history="session", target="fis", m=3, bots=2), 260),
    "pages": (Km.Settings(k=2, urls="terms", time="drop", labels="fresh", target="distinct"), 100),
    "by chance": (Km.Settings(k=2, m=3, target="random", history="day"), 300),
    "the best order": (Km.Settings(k=2, target="users", optimise="search", window="week"), 300),
    "weeks of windows": (Km.Settings(k=2, m=1, window="week", history="day"), 1 << 20),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_release_is_that_of_one_machine(spark, name):
    settings, room = SETTINGS[name]
    log = made_up(seed=len(name))
    expected, pipeline = on_one_machine(log, settings)
    found, done = on_spark(spark, log, settings, room=room)
    assert expected.height > 100
    assert found.equals(expected.select(found.columns))
    assert set(found.columns) == set(expected.columns)
    assert done.dropped == dict(pipeline.stages[0].dropped)
    told, known = done.explanation, pipeline.stages[0].explanation
    assert told["deleted_by_size_of_combination"] == known["deleted_by_size_of_combination"]
    assert sum(told["deleted_by_size_of_combination"].values()) > 0
    checked(found, log, settings)


def checked(release: pl.DataFrame, log: pl.DataFrame, settings: Km.Settings) -> None:
    """Count combinations again: by the audits of the promise, and by the public checker."""
    rows = release.with_row_index("released_row").cast({"released_row": pl.Int64})
    truth = rows.select("released_row", "original_row", "original_user", "released_after")
    evidence = Evidence(rows.select("released_row", *SCHEMA).lazy(), log.lazy(), truth.lazy())
    for audit in Km(settings, KEY, Texts()).promise().audits:
        assert audit.run(evidence) == ""
    if settings.window == "none":
        words = [split(release["query"]), *([split(release["url"])] if settings.urls == "terms" else [])]
        terms = pl.concat(pl.DataFrame({"user": release["user"], "term": some}) for some in words)
        histories = terms.explode("term").drop_nulls().group_by("user").agg("term")["term"].to_list()
        assert is_km_anonymous(histories, settings.k, settings.m)


def test_times_are_moments_whatever_type_and_zone_they_have(spark):
    settings = Km.Settings(k=2, m=1, window="day", history="session")
    log = made_up(seed=5)
    expected, _ = on_one_machine(log, settings)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        zoned, _ = on_spark(spark, log, settings)
        naive, _ = on_spark(spark, log.with_columns(pl.col("time").dt.replace_time_zone(None)), settings)
        counted, _ = on_spark(spark, log.with_columns(pl.col("time").to_physical()), settings)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    time = expected["time"]
    assert zoned["time"].dt.convert_time_zone("UTC").equals(time)
    assert naive["time"].equals(time.dt.replace_time_zone(None))
    assert counted["time"].equals(time.to_physical())
    for found in (zoned, naive, counted):
        assert found.drop("time").equals(expected.select(found.columns).drop("time"))


def test_a_log_without_times_is_split_in_the_order_that_the_key_knows(spark):
    settings = Km.Settings(k=2, m=2, history=4)
    log = made_up(seed=6, records=80).select("row", "user", "query")
    expected, _ = on_one_machine(log, settings)
    found, _ = on_spark(spark, log, settings)
    assert found.height > 10
    assert found.equals(expected.select(found.columns))


def test_values_come_from_a_file(spark, tmp_path, monkeypatch):
    """Shards are chosen from some histories here, and terms are too many to be sent everywhere."""
    from querycloak.engines.spark import km_sweeps

    monkeypatch.setattr(km_sweeps, "_SAMPLE", 100)
    monkeypatch.setattr(km_sweeps, "_FEW_TERMS", 1)
    worth = {f"w{n}": n % 7 for n in range(50)}
    (tmp_path / "worth.csv").write_text("term,utility\n" + "".join(f"{t},{v}\n" for t, v in worth.items()))
    settings = Km.Settings(k=3, target=str(tmp_path / "worth.csv"))
    log = made_up(seed=8)
    expected, _ = on_one_machine(log, settings)
    found, _ = on_spark(spark, log, settings, room=200)
    assert found.equals(expected.select(found.columns))


def test_nothing_and_too_few_people(spark):
    found, done = on_spark(spark, made_up(seed=1).clear(), Km.Settings(k=2))
    assert found.height == 0
    assert done.dropped == {}
    for log in (made_up(seed=1, people=1, records=9), made_up(seed=1, people=3, records=30)):
        settings = Km.Settings(k=5)
        with pytest.raises(ParameterError) as expected:
            on_one_machine(log, settings)
        with pytest.raises(ParameterError) as told:
            on_spark(spark, log, settings)
        assert str(told.value) == str(expected.value)


def test_ids_that_are_addresses_are_not_kept(spark):
    log = made_up(seed=1, records=20)
    log = log.with_columns(user=pl.when(pl.col("row") == 7).then(pl.lit("a@made.example")).otherwise("user"))
    with pytest.raises(Refused, match="e-mail or IP"):
        on_spark(spark, log, Km.Settings(k=2))


def test_what_one_worker_must_do_is_refused_where_it_is_too_much():
    from querycloak.engines.spark import km_gathered

    km_gathered.check_size(km_gathered.MOST)
    with pytest.raises(Refused, match="in one place"):
        km_gathered.check_size(km_gathered.MOST + 1)

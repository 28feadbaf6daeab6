"""`km` on Spark: record for record what one machine releases, and (k,m)-anonymous by the checker."""

from __future__ import annotations

import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from querycloak.audits.evidence import Evidence
from querycloak.dictionary import Dictionaries
from querycloak.engines import local
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.time_order import in_order
from querycloak.errors import ParameterError, Refused
from querycloak.methods.km import Km, is_km_anonymous
from querycloak.spark import batch
from querycloak.spark.engine import combine
from querycloak.spark.stage_worker import ORDER, TRUTH
from querycloak.text.normalise import words as split_words

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
    pipeline = Pipeline([Stage("km", settings)], KEY, Dictionaries())
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


def on_spark(spark: Any, log: pl.DataFrame, settings: Km.Settings) -> tuple[pl.DataFrame, Any]:
    table = loaded(spark, log.with_columns(pl.col("time").to_physical()))
    run = batch.start([Stage("km", settings)], KEY, table)
    done = pl.DataFrame(pl.from_arrow(run.result.toArrow())).sort(ORDER)
    reports = done["_report"].drop_nulls().to_list()
    rows = done.filter(pl.col("_report").is_null()).select(pl.exclude("^_[^t].*$", "_time", "_tie"))
    found = rows.rename(lambda name: name.removeprefix(TRUTH)).drop("row")
    timed = found.with_columns(pl.col("time").cast(pl.Datetime("us", "UTC")))
    return timed, combine(run.plan.whole().stages, [None], reports)


SETTINGS = {
    "days": Km.Settings(k=2, window="day"),
    "triples in parts": Km.Settings(k=3, m=3, history=3, labels="fresh", window="week"),
    "four": Km.Settings(k=2, m=4, window="day", target="users"),
    "sessions": Km.Settings(k=2, history="session", target="fis", m=3, bots=2, window="day"),
    "pages": Km.Settings(k=2, urls="terms", labels="fresh", target="distinct", window="day"),
    "by chance": Km.Settings(k=2, m=3, target="random", history="day", window="week"),
    "weeks of days": Km.Settings(k=2, m=1, window="week", history="day"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_release_is_that_of_one_machine(spark, name):
    settings = SETTINGS[name]
    log = made_up(seed=len(name))
    early = (pl.col("row") == 17) | (pl.col("row") == 18)
    time = (
        pl.when(early)
        .then(datetime(1969, 12, 30, 3, tzinfo=UTC))
        .otherwise(
            pl.when(pl.col("row") % 40 != 3).then("time")  # some have no time
        )
    )
    log = log.with_columns(time=time.cast(SCHEMA["time"]))
    expected, pipeline = on_one_machine(log, settings)
    found, done = on_spark(spark, log, settings)
    assert expected.height > 50
    assert found.equals(expected.select(found.columns))
    assert set(found.columns) == set(expected.columns)
    assert done.dropped == [pipeline.stages[0].dropped]
    (explained,), known = done.explanation, pipeline.stages[0].explanation
    for part in ("deleted_by_size_of_combination", "rounds", "target"):
        assert explained[part] == known[part]
    assert sum(explained["deleted_by_size_of_combination"].values()) > 0
    checked(found, log, settings)


def checked(release: pl.DataFrame, log: pl.DataFrame, settings: Km.Settings) -> None:
    """Count combinations again: by the audits of the promise, and by the public checker."""
    rows = release.with_row_index("released_row").cast({"released_row": pl.Int64})
    truth = rows.select("released_row", "original_row", "original_user", "released_after")
    evidence = Evidence(rows.select("released_row", *SCHEMA).lazy(), log.lazy(), truth.lazy())
    for audit in Km.promise(settings).audits:
        assert audit.run(evidence) == ""
    if settings.window == "none":
        words = [
            split_words(release["query"]),
            *([split_words(release["url"])] if settings.urls == "terms" else []),
        ]
        terms = pl.concat(pl.DataFrame({"user": release["user"], "term": some}) for some in words)
        histories = terms.explode("term").drop_nulls().group_by("user").agg("term")["term"].to_list()
        assert is_km_anonymous(histories, settings.k, settings.m)


def test_values_come_from_a_file(spark, tmp_path):
    worth = {f"w{n}": n % 7 for n in range(50)}
    (tmp_path / "worth.csv").write_text("term,utility\n" + "".join(f"{t},{v}\n" for t, v in worth.items()))
    settings = Km.Settings(k=3, target=str(tmp_path / "worth.csv"), window="day")
    log = made_up(seed=8)
    expected, _ = on_one_machine(log, settings)
    found, _ = on_spark(spark, log, settings)
    assert found.equals(expected.select(found.columns))


def test_nothing_and_too_few_people(spark):
    settings = Km.Settings(k=5, window="day")
    found, done = on_spark(spark, made_up(seed=1).clear(), settings)
    assert found.height == 0
    assert not done.dropped[0]
    with pytest.raises(ParameterError, match="`k` is 5, but the log has only 3 users"):
        on_spark(spark, made_up(seed=1, people=3, records=30), settings)


def test_whole_histories_are_refused_with_a_hint():
    with pytest.raises(Refused, match="protects windows of time") as refused:
        batch.check_distributable([Stage("km", Km.Settings(k=2))], KEY)
    assert "window=week" in refused.value.hint

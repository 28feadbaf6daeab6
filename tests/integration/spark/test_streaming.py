"""A streaming query releases what one machine does, record for record, however often it is killed."""

from __future__ import annotations

import random
import stat
import time

import polars as pl
import pytest

import querycloak as qc
from querycloak.errors import DataError, Refused, UsageError
from querycloak.spark.streaming import finish_stream, plan_of, protect_stream, stream_counts, write_files
from tests.integration.spark import stream_child
from tests.integration.spark.streams import (
    SEED,
    Child,
    collected,
    expected,
    made_up,
    same,
    source,
    write_pieces,
    written,
)

NOW = {"availableNow": True}


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    return made_up()


@pytest.fixture(scope="module")
def folder(log, tmp_path_factory):
    return write_pieces(log, tmp_path_factory.mktemp("stream") / "in", 3)


def run(spark, records, place, methods, settings, out="out", **options):
    """Run a query over all that is there; give what it wrote, as Spark's readers see it."""
    released = protect_stream(records, *methods, lanes=3, seed=SEED, **options, **settings)
    checkpoint = (place / "checkpoint").as_uri()  # of this machine, so it is made private all the same
    query = write_files(released, str(place / out), checkpoint, partitions=2, trigger=NOW)
    assert query.awaitTermination(240)
    return collected(spark.read.parquet(str(place / out)))


CASES = {
    "swap": (["swap"], {"k": 3}),
    "cohort": (["cohort"], {"k": 3, "shards": 5, "labels": "fresh", "time": "coarsen"}),
    "frequent-only": (["frequent-only"], {"k": 2}),
    "z-anonymity": (["z-anonymity"], {"z": 2, "generalise": False}),
    "dp-semantic": (["dp-semantic"], {"epsilon": 10, "max_queries": 20}),
    "chain": (["rules", "frequent-only", "swap"], {"frequent-only.k": 2, "swap.k": 2}),
}


@pytest.mark.parametrize(("methods", "settings"), CASES.values(), ids=CASES)
def test_a_stream_releases_what_one_machine_does(methods, settings, spark, log, folder, tmp_path):
    before, _ = expected(log, methods, settings)
    found = run(spark, source(spark, folder), tmp_path, methods, settings)
    assert same(before, found)
    assert before.height
    assert stat.S_IMODE((tmp_path / "checkpoint").stat().st_mode) == 0o700, "raw records wait there"
    counts = stream_counts(spark, str(tmp_path / "checkpoint"))
    assert [one["accepted"] for one in counts] == [log.height, *(one["released"] for one in counts[:-1])]
    assert counts[-1]["released"] == before.height
    assert all(one["accepted"] == one["released"] + one["held"] + one["dropped"] for one in counts)


def test_a_stopped_stream_can_be_ended(spark, log, folder, tmp_path):
    methods, settings = ["rules", "cohort"], {"k": 3, "shards": 2, "assign": "similar", "patience": 40}
    before, closing = expected(log, methods, settings)
    assert closing.height, "nothing left to the end"
    assert same(before, run(spark, source(spark, folder), tmp_path, methods, settings))
    given = {"lanes": 3, "seed": SEED, **settings}
    ended = finish_stream(source(spark, folder), str(tmp_path / "checkpoint"), *methods, **given)
    assert same(closing, collected(ended))


def test_a_batch_that_is_done_again_is_written_once(spark, log, folder, tmp_path):
    """As after a crash between the sink's own note of a batch and Spark's; to end it before is refused."""
    methods, settings = ["swap"], {"k": 3}
    first = run(spark, source(spark, folder), tmp_path, methods, settings)
    for name in ("2", ".2.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    with pytest.raises(Refused, match="stopped within micro-batch 2: what that released may be written"):
        finish_stream(source(spark, folder), str(tmp_path / "checkpoint"), "swap", lanes=3, seed=SEED, k=3)
    again = run(spark, source(spark, folder), tmp_path, methods, settings)
    assert same(first, again)


def test_a_checkpoint_goes_on_only_with_what_it_was_begun_with(spark, folder, tmp_path):
    """All of it is told before a query starts, so also where no lane of the next micro-batch has a state."""
    run(spark, source(spark, folder), tmp_path, ["rules"], {})

    def start(checkpoint="checkpoint", partitions=2, seed=SEED, lanes=3, **settings):
        released = protect_stream(source(spark, folder), "rules", lanes=lanes, seed=seed, **settings)
        released = released.filter("query != ''").select("query", "user")  # whatever is done to it since
        write_files(released, str(tmp_path / "out"), str(tmp_path / checkpoint), partitions=partitions)

    for other in ({"seed": SEED + 1}, {"digits": False}, {"lanes": 4}):
        with pytest.raises(Refused, match="other methods, settings, columns, lanes, or another secret"):
            start(**other)
    with pytest.raises(Refused, match="started with `partitions=2`, and now it is `3`"):
        start(partitions=3)
    with pytest.raises(Refused, match="a query with another checkpoint wrote"):
        start("new")
    (tmp_path / "checkpoint" / "querycloak.json").unlink()
    with pytest.raises(Refused, match="started by another program"):
        start()
    assert not spark.streams.active


def test_bad_records_are_counted(spark, log, tmp_path):
    bad = log.head(6).with_columns(
        user=pl.when(pl.int_range(pl.len()) == 0).then(None).otherwise("user"),
        query=pl.when(pl.int_range(pl.len()) == 1).then(pl.lit("")).otherwise("query"),
        time=pl.when(pl.int_range(pl.len()) == 2).then(None).otherwise("time"),
    )
    place = write_pieces(bad, tmp_path / "in", 1)
    run(spark, source(spark, place), tmp_path, ["rules"], {})
    (counts,) = stream_counts(spark, str(tmp_path / "checkpoint"))
    assert counts["dropped"] >= 3
    assert {"no user": 1, "no query": 1, "no time": 1}.items() <= counts["reasons"].items()


def test_what_is_written_and_planned_tells_nothing_of_lanes_or_keys(spark, folder):
    """The plan's text holds no key; the released columns are the log's own, and `id` if it is asked for."""
    released = protect_stream(source(spark, folder), "cohort", k=3, lanes=3, seed=SEED, ids=True)
    assert released.columns == ["user", "query", "time", "rank", "url", "category", "id"]
    key = plan_of(["cohort"], released.columns[:-1], 3, SEED, None, "", {"k": 3}).key
    text = released._jdf.queryExecution().toString()
    assert key.hex() not in text
    assert repr(key)[2:-1] not in text


@pytest.mark.parametrize(
    ("methods", "settings", "error", "words"),
    [
        (["microagg-plain"], {}, UsageError, "needs the whole log"),
        (["z-anonymity"], {}, Refused, "needs all records in one place"),
        (["cohort", "frequent-only"], {"cohort.k": 3}, Refused, "must come last"),
        (["dp-histogram"], {}, UsageError, "needs the whole log"),
        (["swap"], {"lanes": 0}, UsageError, "`lanes` must be at least 1"),
        (["swap"], {"seed": None}, UsageError, "needs the same secret after a restart"),
    ],
)
def test_what_a_stream_cannot_do_is_refused_at_once(methods, settings, error, words, spark, folder):
    with pytest.raises(error, match=words):
        protect_stream(source(spark, folder), *methods, **({"seed": SEED} | settings))


def test_a_stream_needs_numbers_and_to_be_one(spark, folder):
    with pytest.raises(DataError, match="no column `row`"):
        protect_stream(source(spark, folder).drop("row"), "swap", seed=SEED)
    with pytest.raises(UsageError, match="is no stream"):
        protect_stream(spark.read.parquet(str(folder)), "swap", seed=SEED)


def test_a_session_with_another_store_of_state_is_told_at_once(spark, folder):
    name = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(name)
    spark.conf.set(name, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(UsageError, match="kept in RocksDB"):
            protect_stream(source(spark, folder), "swap", seed=SEED)
    finally:
        spark.conf.set(name, before)


def test_a_secret_of_its_own_is_kept_and_found_again(spark, folder, tmp_path):
    columns = ["row", "user", "query", "time", "category"]

    def key(source):
        return plan_of(["swap"], columns, 2, None, tmp_path / "secret", source, {}).key

    one = key("nights")
    assert key("nights") == one
    assert key("days") != one


@pytest.mark.timeout(900)
def test_killing_java_again_and_again_changes_nothing(log, tmp_path):
    """Kill -9 at random instants, start again from the checkpoint: the released set of an unkilled run.

    The instants are drawn with a fixed seed; where they fall within a micro-batch is up to the machine.
    """
    write_pieces(log, tmp_path / "in", 6)
    before, _ = expected(log, stream_child.METHODS, stream_child.SETTINGS)
    instants = random.Random(7)
    commits, kills = tmp_path / "checkpoint" / "commits", 0
    for done in (0, 2):
        child = Child(tmp_path, "files")
        try:
            running = child.wait_for(commits / str(done))
            time.sleep(instants.uniform(0, 1.5))
            if running:
                child.kill_jvm()
                kills += 1
        finally:
            child.stop()
    assert kills == 2, "the query was too fast for the kills"
    assert not (commits / "5").exists()
    child = Child(tmp_path, "files")
    try:
        child.finish()
    finally:
        child.stop()
    assert same(before, written(tmp_path / "out"))
    assert before.height


def test_public_names_are_there():
    for name in (
        "protect_stream",
        "from_kafka",
        "write_kafka",
        "write_files",
        "finish_stream",
        "stream_counts",
    ):
        assert hasattr(qc.spark, name)

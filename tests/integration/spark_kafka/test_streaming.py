"""Kafka in and out of a streaming query: readers that keep one message per id see each record once."""

from __future__ import annotations

import json
import random
import time

import polars as pl
import pytest
from confluent_kafka import Consumer, Producer
from pyspark.sql import functions

from querycloak.errors import Refused, UsageError
from querycloak.spark.kafka import OFFSET_BITS, PARTITION_BITS, from_kafka, write_kafka
from querycloak.spark.streaming import protect_stream, stream_counts
from tests.integration.spark import stream_child
from tests.integration.spark.streams import SEED, Child, expected, made_up, same

NOW = {"availableNow": True}
METHODS, SETTINGS = stream_child.METHODS, stream_child.SETTINGS


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    """A log whose records get the numbers 0, 1, ... in a topic with one partition.

    Each search is one record: Kafka's micro-batches end anywhere, also between rows of one search.
    """
    once = made_up(40).filter(pl.struct("user", "query", "time").is_first_distinct())
    return once.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))


def fill(kafka, topic: str, log: pl.DataFrame, partitions: int = 1) -> None:
    """Send a log, its records to one partition after the other."""
    kafka.create_topic(topic, partitions)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for number, line in enumerate(log.drop("row").write_ndjson().splitlines()):
        producer.produce(topic, line.encode(), partition=number % partitions)
    assert producer.flush(60) == 0


def committed(kafka, topic: str, partitions: int = 2) -> pl.DataFrame:
    """Read what readers of committed messages see."""
    options = {"bootstrap.servers": kafka.bootstrap, "group.id": f"reader-{topic}", "log_level": 0}
    more = {
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    reader = Consumer(options | more)
    reader.subscribe([topic])
    found, ended = [], set()
    while len(ended) < partitions:
        message = reader.poll(30)
        assert message is not None
        if message.error():
            ended.add(message.partition())
        else:
            found.append(json.loads(message.value()) | {"id": message.key().decode()})
    reader.close()
    return pl.DataFrame(found, infer_schema_length=None).with_columns(
        pl.col("time").str.to_datetime(time_zone="UTC")
    )


def messages(spark, kafka, topic: str, each: int = 300):
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    return reader.option("maxOffsetsPerTrigger", each).load()


def run(spark, kafka, place, name: str, ids=True, **options) -> None:
    records = from_kafka(messages(spark, kafka, f"{name}-in"))
    released = protect_stream(records, *METHODS, lanes=3, seed=SEED, ids=ids, **SETTINGS)
    options = {"partitions": 2, "trigger": NOW} | options
    query = write_kafka(released, kafka.bootstrap, f"{name}-out", str(place / "checkpoint"), **options)
    assert query.awaitTermination(240)


def test_messages_get_numbers_that_stay_theirs(spark, kafka, log):
    fill(kafka, "numbers", log.head(30), partitions=3)
    table = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap)
    table = table.option("subscribe", "numbers").load()
    found = {row["row"]: row["query"] for row in from_kafka(table).collect()}
    queries = log["query"].to_list()
    assert found == {(at % 3 << OFFSET_BITS) + at // 3: queries[at] for at in range(30)}


def test_times_are_read_as_everywhere_and_topics_count(spark, tmp_path):
    """Whatever zone the session is in: without a zone UTC, numbers since 1970, and no time of today."""
    written = ['"2024-01-01 00:00:00"', "1704067200", '"1704067200000"', '"2024-01-01T01:00:00+01:00"']
    wrong = ['"12:30:00"', '"2024-01"', "null", '"soon"']
    values = [f'{{"user": "a", "query": "q", "time": {text}}}'.encode() for text in (*written, *wrong)]
    data = [(topic, 5, at, value) for at, value in enumerate(values) for topic in "ab"]
    kinds = {"topic": pl.String, "partition": pl.Int32, "offset": pl.Int64, "value": pl.Binary}
    pl.DataFrame([*data, ("c", 0, 0, b"{}")], kinds, orient="row").write_parquet(
        tmp_path / "messages.parquet"
    )
    table = spark.read.parquet(str(tmp_path / "messages.parquet"))
    micros = functions.unix_micros("time").alias("micros")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = from_kafka(table, topics=["a", "b"]).select("row", micros).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert [row["micros"] for row in found[0:-1:2]] == [1704067200 * 10**6] * 4 + [None] * 4
    first = (5 << OFFSET_BITS) + (1 << OFFSET_BITS + PARTITION_BITS)
    assert [row["row"] for row in found[1:-1:2]] == [first + at for at in range(8)]
    assert len({row["row"] for row in found}) == 17
    assert found[-1]["row"] is None, "a topic without a place: this stops a query"


@pytest.mark.parametrize(
    "which", [{"subscribe": "a,b"}, {"subscribePattern": "a.*"}, {"assign": '{"a": [0], "b": [0]}'}]
)
def test_several_topics_must_be_named(which, spark, kafka):
    stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap)
    several = stream.options(**which).load().filter("partition = 0")
    with pytest.raises(UsageError, match="of several topics"):
        from_kafka(several)
    assert from_kafka(several, topics=["a", "b"]).columns[:2] == ["row", "user"]
    with pytest.raises(UsageError, match="`topics` must be different"):
        from_kafka(several, topics=["a", "a"])


def once(found: pl.DataFrame) -> pl.DataFrame:
    """Keep one message per id, as a reader does; messages with the same id must be equal."""
    assert found.unique().height == found["id"].n_unique()
    return found.unique("id").drop("id")


def test_a_repeated_batch_has_the_same_ids(spark, kafka, log, tmp_path):
    """As after a crash between the sink's last message and Spark's commit; a bad message is counted."""
    fill(kafka, "again-in", log)
    kafka.create_topic("again-out", 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    producer.produce("again-in", b"no record at all")
    assert producer.flush(60) == 0
    run(spark, kafka, tmp_path, "again")
    before, _ = expected(log, METHODS, SETTINGS)
    assert committed(kafka, "again-out").height == before.height
    assert same(before, once(committed(kafka, "again-out")))
    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(path.name) for path in commits.glob("[0-9]*"))
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink()
    run(spark, kafka, tmp_path, "again")
    assert same(before, once(committed(kafka, "again-out")))
    assert stream_counts(spark, str(tmp_path / "checkpoint"))[0]["reasons"]["no user"] == 1
    with pytest.raises(Refused, match="started with `partitions=2`, and now it is `3`"):
        run(spark, kafka, tmp_path, "again", partitions=3)
    with pytest.raises(UsageError, match="can write a record twice, and the records have no `id`"):
        run(spark, kafka, tmp_path, "again", ids=False)


@pytest.mark.timeout(900)
def test_killing_java_loses_no_message_and_repeats_have_the_same_id(kafka, log, tmp_path):
    """Kill -9 at instants drawn with a fixed seed; start again from the checkpoint."""
    fill(kafka, "killed-in", log)
    kafka.create_topic("killed-out", 2)
    arguments = ("kafka", kafka.bootstrap, "killed-in", "killed-out")
    instants, kills = random.Random(11), 0
    for done in (0, 2):
        child = Child(tmp_path, *arguments)
        try:
            running = child.wait_for(tmp_path / "checkpoint" / "commits" / str(done))
            time.sleep(instants.uniform(0, 1.5))
            if running:
                child.kill_jvm()
                kills += 1
        finally:
            child.stop()
    assert kills == 2, "the query was too fast for the kills"
    child = Child(tmp_path, *arguments)
    try:
        child.finish()
    finally:
        child.stop()
    before, _ = expected(log, METHODS, SETTINGS)
    assert same(before, once(committed(kafka, "killed-out")))

"""Kafka into a streaming query and out of it: each released record is there once, whatever is killed when."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

from querycloak.errors import MissingExtra, UsageError
from querycloak.formats import times
from querycloak.log import CANONICAL
from querycloak.spark.sinks import started

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

#: A record's number is its topic's, its message's partition and its offset: so many bits of each.
TOPIC_BITS, PARTITION_BITS, OFFSET_BITS = 7, 12, 44
#: Seconds that one step with the broker may take.
_PATIENCE: Final = 60.0
#: Messages handed to the client before its answers are looked at.
_AT_ONCE: Final = 10_000
_TIME: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_QUERY: Final = "sql.streaming.queryId"


def from_kafka(
    messages: DataFrame, columns: Sequence[str] = CANONICAL, *, topics: Sequence[str] = ()
) -> DataFrame:
    """Read records from the messages of a topic: each value is a JSON object with these columns.

    `row` is made of partition and offset, so it stays the same whenever a message is read again. Of several
    topics, name all in `topics`, always in the same order (add new ones at the end): their places count too.
    Times are read as everywhere: those without a zone are UTC, and numbers are seconds or parts of them.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import LongType, StructField, StructType

    _check_topics(messages, topics)
    kinds = ", ".join(f"`{name}` string" for name in columns)
    read = functions.from_json(functions.col("value").cast("string"), kinds).alias("record")
    found = messages.select(_number(topics).alias("row"), read).select("row", "record.*")
    if "time" not in columns:
        return found
    kind = {"time": LongType()}
    schema = StructType([StructField(one.name, kind.get(one.name, one.dataType)) for one in found.schema])
    return found.mapInArrow(_read_times, schema).withColumn("time", functions.timestamp_micros("time"))


def _number(topics: Sequence[str]) -> Column:
    """Give each message a number of its own; where it has none, that stops the query."""
    from pyspark.sql import functions as F

    places = [F.when(F.col("topic") == name, F.lit(at)) for at, name in enumerate(topics)]
    parts = (
        (F.coalesce(*places) if places else F.lit(0), TOPIC_BITS, PARTITION_BITS + OFFSET_BITS),
        (F.col("partition"), PARTITION_BITS, OFFSET_BITS),
        (F.col("offset"), OFFSET_BITS, 0),
    )
    small = [(F.when(part < (1 << bits), part.cast("bigint")), place) for part, bits, place in parts]
    first, *others = (F.shiftleft(part, place) for part, place in small)
    return reduce(lambda one, other: one + other, others, first)


def _check_topics(messages: DataFrame, topics: Sequence[str]) -> None:
    """Refuse messages of several topics without an order of these: two would have the same number."""
    if len(set(topics)) < len(topics) or len(topics) > 1 << TOPIC_BITS:
        raise UsageError(f"`topics` must be different, and at most {1 << TOPIC_BITS}")
    if not topics and _several(messages):
        raise UsageError(
            "the messages are of several topics, and their partitions and offsets do not tell them apart",
            hint='name all topics, always in this order: `from_kafka(messages, topics=["one", "other"])`',
        )


def _several(messages: DataFrame) -> bool:
    """Say whether a stream of messages was given several topics; a table's doubles are found later."""
    leaves = messages._jdf.queryExecution().analyzed().collectLeaves()
    options = [_options(leaves.apply(at)) for at in range(leaves.size())]
    names = {name for one in options for name in (one.get("subscribe") or "").split(",") if name}
    assigned = {name for one in options for name in json.loads(one.get("assign") or "{}")}
    return len(names | assigned) > 1 or any(one.get("subscribepattern") for one in options)


def _options(leaf: Any) -> Any:
    """Give the options that a stream was opened with, if it is one of Spark's connectors."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError):  # anything else has no such thing
        return leaf.extraOptions()
    return {}


def _read_times(source: Iterable[Any]) -> Iterator[Any]:
    """Read times from texts as the product does everywhere, whatever zone Spark's session is in."""
    import polars as pl
    import pyarrow as pa

    for batch in source:
        texts = pl.Series("time", batch.column("time"))
        read = {"time": pa.array(times.parse(texts).to_physical().to_arrow(), pa.int64())}
        names = batch.schema.names
        yield pa.RecordBatch.from_arrays([read.get(n, batch.column(n)) for n in names], names=names)


@dataclass(frozen=True)
class _Target:
    """Where released records go, and how the query's transactions are called there."""

    topic: str
    writers: int
    options: Mapping[str, str] = field(repr=False)  # they may hold a password


def write_kafka(
    released: DataFrame,
    servers: str,
    topic: str,
    checkpoint: str,
    *,
    writers: int = 1,
    partitions: int = 8,
    options: Mapping[str, str] | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Start a query that writes what leaves to a Kafka topic: readers of committed messages see each once.

    Each of the `writers` sends its share of a micro-batch in one transaction, and in it notes that the batch
    is done. A batch that Spark does again after a crash is looked up first. `options` are the client's own
    (`security.protocol`, ...); `trigger` is Spark's (`{"processingTime": "10 seconds"}`).
    """
    try:
        import confluent_kafka  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("kafka", "writing to Kafka") from None
    from pyspark.sql import functions

    if writers < 1:
        raise UsageError(f"`writers` must be at least 1; got {writers}")
    target = _Target(topic, writers, {**(options or {}), "bootstrap.servers": servers})
    how = {"ignoreNullFields": "false", "timestampFormat": _TIME, "timeZone": "UTC"}
    record = functions.to_json(functions.struct(*released.columns), how)
    lines = released.select(record.cast("binary").alias("value"))
    writer = lines.writeStream.foreachBatch(partial(_write, target)).trigger(**(trigger or _NOW))
    # Records are dealt out by their bytes: in another form, or to more writers, one would find its way into a
    # share that is noted as sent, or be sent again. So all of that is for good.
    form = ", ".join(f"{name} {kind}" for name, kind in released.dtypes)
    return started(writer, released, checkpoint, partitions=partitions, writers=writers, columns=form)


_NOW: Final = {"processingTime": "0 seconds"}


def _write(target: _Target, batch: DataFrame, number: int) -> None:
    """Send one micro-batch; it is computed once, since it changes the state."""
    query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY)
    if not query:  # a note without it would be taken for that of another query
        raise RuntimeError("Spark does not say which query this is")
    name = f"querycloak-{query}"
    dealt = batch.repartition(target.writers, "value")  # the same share at every attempt
    dealt.mapInArrow(partial(_send, target, name, number), "sent long").collect()


def _send(target: _Target, name: str, number: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Send a share of a micro-batch in one transaction, unless that was done before."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    values = (value for batch in batches for value in batch.column("value").to_pylist())
    with closing(_Share(target, f"{name}-{context.partitionId()}")) as share:
        sent = share.send(values, number) if share.next_batch() <= number else 0
    yield pa.RecordBatch.from_arrays([pa.array([sent], pa.int64())], names=["sent"])


def _patiently(step: Callable[[], Any], again: Callable[[Any], bool] = lambda error: True) -> Any:
    """Take a step again while a broker starts, or hands its work to another one."""
    from confluent_kafka import KafkaException

    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return step()
        except KafkaException as error:
            if time.monotonic() > end or not again(error.args[0]):
                raise
            time.sleep(0.2)


def _may_be_repeated(error: Any) -> bool:
    """Say whether a step of a transaction can be taken again; else Spark makes another attempt."""
    return bool(error.retriable())


class _Share:
    """One writer: a producer whose name shuts out the one of an earlier attempt, and a note of what is done.

    The note is the group's position in the sink: the number of the next micro-batch, with how many writers
    there are. It is written in the transaction, so it is there if and only if the records are.
    """

    def __init__(self, target: _Target, name: str) -> None:
        from confluent_kafka import Consumer, Producer, TopicPartition

        self._target = target
        quiet = dict(target.options) | {"log_level": 0}
        self._producer = Producer(
            quiet | {"transactional.id": name, "transaction.timeout.ms": 600_000, "linger.ms": 20}
        )
        # The first step gives up what an earlier attempt left open.
        _patiently(lambda: self._producer.init_transactions(_PATIENCE), _may_be_repeated)
        self._group = Consumer(quiet | {"group.id": name, "isolation.level": "read_committed"})
        self._note = TopicPartition(target.topic, 0)

    def next_batch(self) -> int:
        """Read which micro-batch comes next, as far as this writer knows."""
        (found,) = _patiently(lambda: self._group.committed([self._note], timeout=_PATIENCE))
        if found.offset < 0:
            return 0
        if found.metadata != str(self._target.writers):
            raise UsageError(
                f"this query began with {found.metadata} writers, and a part of a micro-batch may be there",
                hint=f"use `writers={found.metadata}`",
            )
        return int(found.offset)

    def send(self, values: Iterable[bytes], number: int) -> int:
        """Send records and the note, all or nothing; say how many there were."""
        from confluent_kafka import TopicPartition

        self._producer.begin_transaction()
        sent = 0
        for sent, value in enumerate(values, 1):
            self._put(value)
            if sent % _AT_ONCE == 0:
                self._producer.poll(0)
        note = TopicPartition(self._target.topic, 0, number + 1, str(self._target.writers))
        group = self._group.consumer_group_metadata()
        self._producer.send_offsets_to_transaction([note], group, _PATIENCE)
        # This fails if any record was not taken.
        _patiently(lambda: self._producer.commit_transaction(_PATIENCE), _may_be_repeated)
        return sent

    def close(self) -> None:
        """Hang up."""
        self._group.close()

    def _put(self, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._target.topic, value)
                return
            except BufferError:
                self._producer.poll(1.0)

"""Kafka into a streaming query and out of it: each released record is there once, whatever is killed when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from querycloak.engines.spark.sinks import started
from querycloak.errors import MissingExtra, UsageError
from querycloak.log import CANONICAL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

#: A record's number is its message's partition, then so many bits of its offset.
OFFSET_BITS: Final = 44
#: Seconds that one step with the broker may take.
_PATIENCE: Final = 60.0
#: Messages handed to the client before its answers are looked at.
_AT_ONCE: Final = 10_000
_TIME: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_QUERY: Final = "sql.streaming.queryId"


def from_kafka(messages: DataFrame, columns: Sequence[str] = CANONICAL) -> DataFrame:
    """Read records from the messages of one topic: each value is a JSON object with these columns.

    `row` is made of partition and offset, so it stays the same whenever a message is read again.
    """
    from pyspark.sql import functions

    kinds = ", ".join(f"`{name}` string" for name in columns)
    read = functions.from_json(functions.col("value").cast("string"), kinds).alias("record")
    offset = functions.col("offset")
    small = functions.when(offset < (1 << OFFSET_BITS), offset)  # beyond it: none, which stops the query
    row = functions.shiftleft(functions.col("partition").cast("bigint"), OFFSET_BITS) + small
    found = messages.select(row.alias("row"), read).select("row", "record.*")
    times = {"time": functions.try_to_timestamp("time")} if "time" in columns else {}
    return found.withColumns(times)


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
    how = {"ignoreNullFields": "false", "timestampFormat": _TIME}
    record = functions.to_json(functions.struct(*released.columns), how)
    lines = released.select(record.cast("binary").alias("value"))
    writer = lines.writeStream.foreachBatch(partial(_write, target)).trigger(**(trigger or _NOW))
    return started(writer, lines.sparkSession, checkpoint, partitions)


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

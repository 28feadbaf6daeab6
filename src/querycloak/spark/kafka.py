"""Kafka as the source and the sink of a streaming query, by Spark's own connector."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, Final

import polars as pl
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import LongType, StructField, StructType

from querycloak.errors import UsageError
from querycloak.formats import times
from querycloak.log import CANONICAL
from querycloak.spark.streaming import NOW, start_query

#: A record's number is its topic's, its message's partition and its offset: so many bits of each.
TOPIC_BITS, PARTITION_BITS, OFFSET_BITS = 7, 12, 44
_TIME: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


def from_kafka(
    messages: DataFrame, columns: Sequence[str] = CANONICAL, *, topics: Sequence[str] = ()
) -> DataFrame:
    """Read records from the messages of a topic: each value is a JSON object with these columns.

    `row` is computed from partition and offset, so it is the same whenever a message is read again. If there
    are several topics, name all in `topics`, always in the same order (new ones at the end).
    Times are read as everywhere: those without a zone are UTC, and numbers are seconds or parts of them.
    """
    _check_topics(messages, topics)
    kinds = ", ".join(f"`{name}` string" for name in columns)
    read = F.from_json(F.col("value").cast("string"), kinds).alias("record")
    found = messages.select(_number(topics).alias("row"), read).select("row", "record.*")
    if "time" not in columns:
        return found
    kind = {"time": LongType()}
    schema = StructType([StructField(one.name, kind.get(one.name, one.dataType)) for one in found.schema])
    return found.mapInArrow(_read_times, schema).withColumn("time", F.timestamp_micros("time"))


def _number(topics: Sequence[str]) -> Column:
    """Return the number of each message; one that does not fit stops the query."""
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
            "the messages are of several topics, and partitions and offsets do not distinguish them",
            hint='name all topics, always in this order: `from_kafka(messages, topics=["one", "other"])`',
        )


def _several(messages: DataFrame) -> bool:
    """Whether a stream reads several topics; repeated numbers of a table are found later."""
    leaves = messages._jdf.queryExecution().analyzed().collectLeaves()
    options = [_options(leaves.apply(at)) for at in range(leaves.size())]
    names = {name for one in options for name in (one.get("subscribe") or "").split(",") if name}
    assigned = {name for one in options for name in json.loads(one.get("assign") or "{}")}
    return len(names | assigned) > 1 or any(one.get("subscribepattern") for one in options)


def _options(leaf: Any) -> Any:
    """Return the options of a stream if it is one of Spark's connectors."""
    with suppress(Py4JError):  # anything else has no such thing
        return leaf.extraOptions()
    return {}


def _read_times(source: Iterable[Any]) -> Iterator[Any]:
    """Parse times as the formats do, in any time zone of Spark's session."""
    for batch in source:
        texts = pl.Series("time", batch.column("time"))
        read = {"time": pa.array(times.parse(texts).to_physical().to_arrow(), pa.int64())}
        names = batch.schema.names
        yield pa.RecordBatch.from_arrays([read.get(n, batch.column(n)) for n in names], names=names)


def write_kafka(
    released: DataFrame,
    servers: str,
    topic: str,
    checkpoint: str,
    *,
    partitions: int = 8,
    options: Mapping[str, str] | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Start a query that writes released records to a Kafka topic with Spark's own sink.

    The sink delivers at least once: after a crash, Spark repeats a micro-batch. Therefore `released` must
    have the column `id` (`protect_stream(..., ids=True)`), which becomes the key of each message. A repeated
    record has the same id, so readers, or a compacted topic, keep one. `options` are Spark's (`kafka.…`).
    """
    if "id" not in released.columns:
        raise UsageError(
            "Spark's Kafka sink can write a record twice, and the records have no `id`",
            hint="use `protect_stream(..., ids=True)`; readers keep one message per key",
        )
    how = {"ignoreNullFields": "false", "timestampFormat": _TIME, "timeZone": "UTC"}
    columns = [name for name in released.columns if name != "id"]
    record = F.to_json(F.struct(*columns), how).cast("binary").alias("value")
    messages = released.select(F.col("id").cast("binary").alias("key"), record)
    writer = messages.writeStream.format("kafka").outputMode("append").trigger(**(trigger or NOW))
    target = {"kafka.bootstrap.servers": servers, "topic": topic}
    writer = writer.options(**(options or {}), **target)
    return start_query(writer, released, checkpoint, partitions=partitions)

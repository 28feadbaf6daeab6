"""Starts streaming queries: their checkpoint is private, and as many stores of state as are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from querycloak.spark.checkpoint import Folder, check_sink, keep_note, make_private, marks_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_SHUFFLES: Final = "spark.sql.shuffle.partitions"
#: A message of Spark's to a worker has up to so many parts of a lane's journal: it must stay below 2 GB.
_PARTS_AT_ONCE: Final = {
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "32"
}


def write_files(
    released: DataFrame,
    folder: str,
    checkpoint: str,
    *,
    partitions: int = 8,
    format: str = "parquet",  # noqa: A002 - Spark's own name
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Start a query that writes what leaves to files: whoever reads the folder with Spark sees each once.

    `trigger` is Spark's (`{"processingTime": "10 seconds"}`). `partitions` is for good, as `lanes` is. A new
    checkpoint needs a new folder.
    """
    session = released.sparkSession
    check_sink(Folder(session, folder), Folder(session, checkpoint))
    writer = released.writeStream.format(format).outputMode("append").option("path", folder)
    writer = writer.trigger(**(trigger or {"processingTime": "0 seconds"}))
    return started(writer, released, checkpoint, partitions=partitions)


def started(
    writer: DataStreamWriter, released: DataFrame, checkpoint: str, *, partitions: int, **more: Any
) -> StreamingQuery:
    """Start a query with a checkpoint that nobody else can read, and with so many stores of state.

    The checkpoint stays with all that is named here: Spark would go on with other `partitions` than asked
    for, and see another secret only in lanes that have a state already.
    """
    session = released.sparkSession
    place = Folder(session, checkpoint)
    if place.local is not None:  # raw records wait in it
        make_private(place.local)
    keep_note(place, {"marks": marks_of(released), "partitions": partitions, **more})
    chosen = {_SHUFFLES: str(partitions), **_PARTS_AT_ONCE}
    before = {name: session.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():  # the query takes its own copy when it starts
        session.conf.set(name, value)
    try:
        return writer.option("checkpointLocation", checkpoint).start()
    finally:
        for name, former in before.items():
            session.conf.unset(name) if former is None else session.conf.set(name, former)

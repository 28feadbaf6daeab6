"""Starts streaming queries: their checkpoint is private, and as many stores of state as are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_SHUFFLES: Final = "spark.sql.shuffle.partitions"


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

    `trigger` is Spark's (`{"processingTime": "10 seconds"}`). `partitions` is for good, as `lanes` is.
    """
    writer = released.writeStream.format(format).outputMode("append").option("path", folder)
    return started(
        writer.trigger(**(trigger or {"processingTime": "0 seconds"})),
        released.sparkSession,
        checkpoint,
        partitions,
    )


def started(
    writer: DataStreamWriter, session: SparkSession, checkpoint: str, partitions: int
) -> StreamingQuery:
    """Start a query with a checkpoint that nobody else can read, and with so many stores of state."""
    if "://" not in checkpoint:  # raw records wait in it
        Path(checkpoint).mkdir(mode=0o700, parents=True, exist_ok=True)
    before = session.conf.get(_SHUFFLES) or "200"
    session.conf.set(_SHUFFLES, str(partitions))  # the query takes its own copy when it starts
    try:
        return writer.option("checkpointLocation", checkpoint).start()
    finally:
        session.conf.set(_SHUFFLES, before)

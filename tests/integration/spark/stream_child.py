"""Runs one streaming query to the end of what is there: a process that a test may kill.

Usage: python -m tests.integration.spark.stream_child FOLDER files|kafka [SERVERS IN OUT]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from querycloak.spark.kafka import from_kafka, write_kafka
from querycloak.spark.session import start_session
from querycloak.spark.streaming import protect_stream, write_files
from tests.integration.spark.streams import SEED, source

METHODS = ("cohort",)
SETTINGS = {"k": 3, "shards": 2}
NOW = {"availableNow": True}


def session(folder: Path) -> SparkSession:
    options = {
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.default.parallelism": "2",
        # Each child is young when it dies: Java should start soon rather than run fast.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
    }
    given = json.loads(os.environ.get("SPARK_TEST_OPTIONS", "{}"))
    spark = start_session(os.environ.get("SPARK_TEST_MASTER", "local[2]"), options | given)
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    unfinished = folder / "jvm.pid.unfinished"
    unfinished.write_text(str(pid))
    unfinished.rename(folder / "jvm.pid")
    return spark


def main() -> None:
    folder, kind, *more = Path(sys.argv[1]), *sys.argv[2:]
    spark = session(folder)
    checkpoint = str(folder / "checkpoint")
    if kind == "files":
        released = protect_stream(source(spark, folder / "in"), *METHODS, lanes=3, seed=SEED, **SETTINGS)
        query = write_files(released, str(folder / "out"), checkpoint, partitions=2, trigger=NOW)
    else:
        servers, topic, sink = more
        messages = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        messages = messages.option("subscribe", topic).option("startingOffsets", "earliest")
        records = from_kafka(messages.option("maxOffsetsPerTrigger", 200).load())
        released = protect_stream(records, *METHODS, lanes=3, seed=SEED, ids=True, **SETTINGS)
        query = write_kafka(released, servers, sink, checkpoint, partitions=2, trigger=NOW)
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()

"""Starts a Spark session that keeps to this machine, and says what is missing where it cannot."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from querycloak.engines import programs
from querycloak.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
#: What every session of ours is started with. Raw records pass through the disk: so that is encrypted.
_OPTIONS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
#: Where all of Spark runs in this process: nothing of it listens on another address.
_LOOPBACK: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def start(master: str = "local[*]", options: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session, or give the one that runs; `options` are Spark's own and come last."""
    check()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = dict(_OPTIONS)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        chosen |= _LOOPBACK
    if jars := programs.spark_jars():  # the connector for Kafka
        chosen["spark.jars"] = ",".join(map(str, jars))
    builder = SparkSession.builder.master(master).appName("querycloak")
    for name, value in (chosen | dict(options or {})).items():
        builder = builder.config(name, value)
    with _silent_start():
        return builder.getOrCreate()


@contextmanager
def _silent_start() -> Iterator[None]:
    """Start Java with no standard error, unless somebody asks: it would show every worker's stack there."""
    if os.environ.get("QUERYCLOAK_SPARK_LOG"):
        yield
        return
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def check() -> None:
    """Say what is missing: the extra, or Java."""
    if any(find_spec(name) is None for name in ("google", "pandas", "pyarrow", "pyspark")):
        raise MissingExtra("spark", "running on Spark")
    if programs.java() is None:
        raise UsageError(
            "Spark needs Java 17, which is not on this machine", hint=programs.how_to_get("Java")
        )


def is_local(master: str) -> bool:
    """Say whether all of Spark runs in one process of this machine."""
    return master.startswith("local")

"""Starts a Spark session that keeps to this machine, and says what is missing where it cannot."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from querycloak.engines import programs
from querycloak.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What every session of ours is started with. Raw records pass through the disk: so that is encrypted.
_OPTIONS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",
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
    builder = SparkSession.builder.master(master).appName("querycloak")
    for name, value in (chosen | dict(options or {})).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def check() -> None:
    """Say what is missing: the extra, or Java."""
    try:
        import pandas
        import pyarrow
        import pyspark  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("spark", "running on Spark") from None
    if programs.java() is None:
        raise UsageError("Spark needs Java 17, which is not on this machine", hint=programs.how_to_get("Java"))


def is_local(master: str) -> bool:
    """Say whether all of Spark runs in one process of this machine."""
    return master.startswith("local")

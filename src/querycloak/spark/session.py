"""Starts a Spark session that shows records to nobody else, and says what is missing where it cannot."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from querycloak import environment
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
#: Between machines: who talks is known, and nobody else can read it.
_NETWORK: Final = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
#: Masters that deal out the secret for that themselves.
_SECRETIVE: Final = ("yarn", "k8s://")
_SECRET: Final = "spark.authenticate.secret"  # noqa: S105 - the name of an option
_DISK: Final = "spark.io.encryption.enabled"
_TRAFFIC: Final = "spark.network.crypto.enabled"
_TLS: Final = "spark.ssl.rpc.enabled"


def start(master: str = "local[*]", options: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session, or give the one that runs; `options` are Spark's own and come last.

    One that runs keeps its own settings for disks and traffic; it is refused where records would travel
    between machines for all to read, unless `options` say that they may.
    """
    check()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    given = dict(options or {})
    builder = SparkSession.builder.master(master).appName("querycloak")
    for name, value in chosen(master, given).items():
        builder = builder.config(name, value)
    own = SparkContext._active_spark_context is None
    with _silent_start():
        session = builder.getOrCreate()
    try:
        _check_shut(session, given)
    except UsageError:
        if own:
            session.stop()
        raise
    return session


def chosen(master: str, options: Mapping[str, str]) -> dict[str, str]:
    """Put together what a session at this master is started with."""
    found = dict(_OPTIONS)
    if is_local(master):
        found |= _LOOPBACK
    else:  # other machines do not have our file of settings for logs: they are told the level
        level = os.environ.get("QUERYCLOAK_SPARK_LOG", "off").upper()
        found |= {"spark.log.level": level, "spark.executor.syncLogLevel.enabled": "true"}
        if master.startswith(_SECRETIVE) or _SECRET in options:
            found |= _NETWORK
    if jars := environment.spark_jars():  # the connector for Kafka
        found["spark.jars"] = ",".join(map(str, jars))
    return found | dict(options)


def _check_shut(session: SparkSession, given: Mapping[str, str]) -> None:
    """Look at what the session goes by, whoever started it."""
    context = session.sparkContext
    settings = dict(context.getConf().getAll())
    trusted = given.get(_TRAFFIC) == "false"
    if not trusted and not shut_between_machines(str(context.master), settings):
        raise UsageError(
            "records would travel between the machines of this cluster for all to read",
            hint=f"set `spark.authenticate=true`, `{_TRAFFIC}=true` and, where the cluster deals out none, "
            f"`{_SECRET}`; if the network is trusted, say so with `{_TRAFFIC}=false`",
        )
    if settings.get(_DISK, "false") != "true" and _DISK not in given:
        warnings.warn(
            f"the Spark session that runs already does not encrypt what it writes to disk (`{_DISK}`)",
            UserWarning,
            stacklevel=3,
        )


def shut_between_machines(master: str, settings: Mapping[str, str]) -> bool:
    """Say whether traffic is encrypted, stays on this machine, or somebody said that it need not be."""
    if is_local(master) or settings.get(_TLS) == "true":
        return True
    return _TRAFFIC in settings and (
        settings[_TRAFFIC] != "true" or settings.get("spark.authenticate") == "true"
    )


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
    if environment.java() is None:
        raise UsageError(
            "Spark needs Java 17, which is not on this machine", hint=environment.how_to_install("Java")
        )


def is_local(master: str) -> bool:
    """Say whether all of Spark runs in one process of this machine."""
    return master.startswith("local")

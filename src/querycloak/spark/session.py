"""Spark sessions: start with encrypted disk and traffic, check what is installed, translate errors."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import TYPE_CHECKING, Final

from querycloak import environment, errors
from querycloak.errors import DataError, MissingExtra, QueryCloakError, UsageError
from querycloak.temporary_files import before_removal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
#: Options of every session. Raw records pass through the disk, so that is encrypted.
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
#: If all of Spark runs in this process, nothing of it listens on another address.
_LOOPBACK: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
#: Between machines: authenticated and encrypted.
_NETWORK: Final = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
#: Masters that distribute the secret for that themselves.
_OWN_SECRET: Final = ("yarn", "k8s://")
_SECRET: Final = "spark.authenticate.secret"  # noqa: S105 - the name of an option
_DISK: Final = "spark.io.encryption.enabled"
_TRAFFIC: Final = "spark.network.crypto.enabled"
_TLS: Final = "spark.ssl.rpc.enabled"
#: Seconds that Java has to end after SIGTERM.
_SHUTDOWN: Final = 5
#: An error of ours, inside the stacks of two languages.
_OURS: Final = re.compile(r"querycloak\.errors\.(\w+): (.+?)(?:\n\s*\nhint: ([^\n]+))?\n", re.DOTALL)


def start_session(master: str = "local[*]", options: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session, or return the one that runs; `options` are Spark's own and come last.

    A running session keeps its settings for disks and traffic. It is refused if records would travel
    unencrypted between machines, unless `options` allow that.
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
    if (java := getattr(SparkContext._gateway, "proc", None)) is not None:
        before_removal.append(partial(_end, java))  # it writes to temporary files
    try:
        _check_encryption(session, given)
    except UsageError:
        if own:
            session.stop()
        raise
    return session


def _end(java: Popen[bytes]) -> None:
    """End Java, which then removes its own temporary files."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # threads that wait for Java would print their stacks
    java.terminate()
    try:
        java.wait(_SHUTDOWN)
    except TimeoutExpired:
        java.kill()
        java.wait()


def chosen(master: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with which a session at this master is started."""
    found = dict(_OPTIONS)
    if is_local(master):
        found |= _LOOPBACK
    else:  # other machines do not have our log settings file: they get the level
        level = os.environ.get("QUERYCLOAK_SPARK_LOG", "off").upper()
        found |= {"spark.log.level": level, "spark.executor.syncLogLevel.enabled": "true"}
        if master.startswith(_OWN_SECRET) or _SECRET in options:
            found |= _NETWORK
    if jars := environment.spark_jars():  # the connector for Kafka
        found["spark.jars"] = ",".join(map(str, jars))
    return found | dict(options)


def _check_encryption(session: SparkSession, given: Mapping[str, str]) -> None:
    """Check the settings of the session, also of one that was started elsewhere."""
    context = session.sparkContext
    settings = dict(context.getConf().getAll())
    trusted = given.get(_TRAFFIC) == "false"
    if not trusted and not encrypted_between_machines(str(context.master), settings):
        raise UsageError(
            "records would travel unencrypted between the machines of this cluster",
            hint=f"set `spark.authenticate=true`, `{_TRAFFIC}=true` and, if the cluster assigns none, "
            f"`{_SECRET}`; if the network is trusted, set `{_TRAFFIC}=false`",
        )
    if settings.get(_DISK, "false") != "true" and _DISK not in given:
        warnings.warn(
            f"the Spark session that runs already does not encrypt what it writes to disk (`{_DISK}`)",
            UserWarning,
            stacklevel=3,
        )


def encrypted_between_machines(master: str, settings: Mapping[str, str]) -> bool:
    """Whether traffic is encrypted, stays on this machine, or was declared as trusted."""
    if is_local(master) or settings.get(_TLS) == "true":
        return True
    return _TRAFFIC in settings and (
        settings[_TRAFFIC] != "true" or settings.get("spark.authenticate") == "true"
    )


@contextmanager
def _silent_start() -> Iterator[None]:
    """Start Java without standard error unless logs are requested: it would show every worker's stack."""
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


#: Loggers of PySpark that write the messages of failed queries.
_QUERY_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def check() -> None:
    """Raise if the extra or Java is missing."""
    if any(find_spec(name) is None for name in ("google", "pandas", "pyarrow", "pyspark")):
        raise MissingExtra("spark", "running on Spark")
    if environment.java() is None:
        raise UsageError("Spark needs Java 17, which is not on this machine", hint=environment.java_hint())


def is_local(master: str) -> bool:
    """Whether all of Spark runs in one process of this machine."""
    return master.startswith("local")


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise a worker's error as if it had happened here; of other errors, name only the type.

    PySpark logs the whole message of an error too, with the cell that caused it: its loggers are silenced.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    loggers = [logging.getLogger(name) for name in _QUERY_LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    except (PySparkException, Py4JError) as error:
        raise _translated(str(error), type(error).__name__) from None
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _translated(text: str, kind: str) -> QueryCloakError:
    """Return the error that a worker raised; nothing else of Spark's text, which may contain rows."""
    found = _OURS.search(text + "\n")
    known = getattr(errors, found[1], None) if found else None
    if found and isinstance(known, type) and issubclass(known, QueryCloakError):
        return known(found[2].split("\n")[0], hint=found[3] or "")
    return DataError(
        f"Spark gave up ({kind})",
        hint="set QUERYCLOAK_SPARK_LOG=error to see Spark's own messages; they may contain records",
    )

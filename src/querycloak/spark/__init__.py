"""Logs beyond one machine: the methods on Spark's DataFrames, record for record what one machine gives.

    import querycloak as qc

    released = qc.spark.protect(log, "cohort", k=10)

It needs the extra `spark` and Java 17. How-to: docs/how-to/spark.md, docs/how-to/spark-streaming.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from querycloak.spark.batch import SkippedRows as SkippedRows
    from querycloak.spark.batch import protect as protect
    from querycloak.spark.dataframe import classify as classify
    from querycloak.spark.engine import SparkEngine as SparkEngine
    from querycloak.spark.kafka import from_kafka as from_kafka
    from querycloak.spark.kafka import write_kafka as write_kafka
    from querycloak.spark.session import start_session as start_session
    from querycloak.spark.streaming import finish_stream as finish_stream
    from querycloak.spark.streaming import protect_stream as protect_stream
    from querycloak.spark.streaming import stream_counts as stream_counts
    from querycloak.spark.streaming import write_files as write_files

_MODULES = {
    "batch": ("SkippedRows", "protect"),
    "dataframe": ("classify",),
    "engine": ("SparkEngine",),
    "kafka": ("from_kafka", "write_kafka"),
    "session": ("start_session",),
    "streaming": ("finish_stream", "protect_stream", "stream_counts", "write_files"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load names on first use; raise if a part is missing before anything of Spark is imported."""
    if name not in _HOME:
        raise AttributeError(f"module 'querycloak.spark' has no attribute {name!r}")
    from querycloak.spark.session import check

    check()
    return getattr(import_module(f"querycloak.spark.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)

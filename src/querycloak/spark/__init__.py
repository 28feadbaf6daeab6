"""Logs beyond one machine: the methods on Spark's DataFrames, record for record what one machine gives.

    import querycloak as qc

    released = qc.spark.protect(log, "cohort", k=10)

It needs the extra `spark` and Java 17. How-to: docs/how-to/spark.md, docs/how-to/spark-streaming.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from querycloak.spark.batch import SkippedRows, protect
    from querycloak.spark.classify import classify
    from querycloak.spark.finishing import finish_stream, stream_counts
    from querycloak.spark.kafka import from_kafka, write_kafka
    from querycloak.spark.session import start as start_session
    from querycloak.spark.streaming import protect_stream, write_files

#: Where each name is, and what it is called there.
_HOME = {
    "SkippedRows": ("batch", "SkippedRows"),
    "classify": ("classify", "classify"),
    "finish_stream": ("finishing", "finish_stream"),
    "from_kafka": ("kafka", "from_kafka"),
    "protect": ("batch", "protect"),
    "protect_stream": ("streaming", "protect_stream"),
    "start_session": ("session", "start"),
    "stream_counts": ("finishing", "stream_counts"),
    "write_files": ("streaming", "write_files"),
    "write_kafka": ("kafka", "write_kafka"),
}

__all__ = [
    "SkippedRows",
    "classify",
    "finish_stream",
    "from_kafka",
    "protect",
    "protect_stream",
    "start_session",
    "stream_counts",
    "write_files",
    "write_kafka",
]


def __getattr__(name: str) -> Any:
    """Load names on first use; say which part is missing before anything of Spark is imported."""
    if name not in _HOME:
        raise AttributeError(f"module 'querycloak.spark' has no attribute {name!r}")
    from querycloak.spark.session import check

    check()
    module, there = _HOME[name]
    return getattr(import_module(f"querycloak.spark.{module}"), there)


def __dir__() -> list[str]:
    return sorted(__all__)

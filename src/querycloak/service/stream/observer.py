"""Callbacks of a stream, in the worker's thread and in the order of the stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from querycloak.service.stream.stream import Output, Stream


class StreamObserver:
    """Base class of stream observers; every callback does nothing by default."""

    def on_records(self, stream: Stream, rows: pl.DataFrame) -> None:
        """Records with their `row` and `_head` are about to be pushed."""

    def on_release(self, output: Output) -> None:
        """The pipeline has released records; sinks do not have them yet."""

    def on_delivery(self, output: Output) -> None:
        """All sinks have the released records."""

    def on_erasure(self, stream: Stream, label: str) -> None:
        """A user has been erased."""

    def on_epoch(self, stream: Stream) -> None:
        """A new epoch has started."""

    def on_setting(self, stream: Stream) -> None:
        """A setting has changed."""

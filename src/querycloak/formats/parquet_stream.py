"""Writes one Parquet file while its frames are still being made: encoding runs beside the maker."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

_PATIENCE = 0.2  # seconds between looks at a writer that may have died


class ParquetStream:
    """Takes frames of one schema, and hands them to a thread that writes them to a file-like object."""

    def __init__(self, schema: pl.Schema, target: Any) -> None:
        self.schema = schema
        self._target = target
        self._frames: queue.Queue[pl.DataFrame | None] = queue.Queue(maxsize=1)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        try:
            frames = register_io_source(self._given, schema=self.schema)
            frames.sink_parquet(self._target, compression="zstd", compression_level=1)
        except BaseException as error:
            self._error = error

    def _given(
        self, columns: list[str] | None, predicate: Any, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        """Give the frames as they come; polars asks for no columns, predicate or rows when all is written."""
        while (frame := self._frames.get()) is not None:
            yield frame

    def put(self, frame: pl.DataFrame | None) -> None:
        """Hand over the next frame; wait while two are on their way. None ends the file."""
        while self._error is None:
            try:
                self._frames.put(frame, timeout=_PATIENCE)
                return
            except queue.Full:
                continue
        raise self._error

    def close(self) -> None:
        """Wait until everything is written."""
        self.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """Stop without caring for the file."""
        with contextlib.suppress(Exception):
            self.close()

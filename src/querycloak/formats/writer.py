"""`Writer`: takes records frame by frame; the file appears under its name only on `commit`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

import polars as pl

from querycloak.files import check_outputs
from querycloak.formats import encode
from querycloak.formats.layout import Layout, layout_for
from querycloak.formats.parquet_writer import ParquetOutput
from querycloak.formats.sinks import Sink
from querycloak.formats.ubi_writer import UbiOutput
from querycloak.log import Log

#: Rows turned into bytes at a time: enough to be fast, little enough to stay small.
_SLICE: Final = 200_000


class Output(Protocol):
    """What every format offers for writing."""

    def write(self, frame: pl.DataFrame) -> None:
        """Take the next records."""

    def finish(self) -> None:
        """Complete the bytes."""

    def commit(self) -> None:
        """Give the output its name."""

    def discard(self) -> None:
        """Leave nothing behind."""

    @property
    def temporary(self) -> Path | bytes:
        """The file with the unfinished output, or its bytes."""

    @property
    def sha256(self) -> str:
        """The hash of the finished bytes."""


class TextOutput:
    """Lines of text: AOL, Excite, CSV, TSV, JSON lines."""

    def __init__(self, path: str | Path, layout: Layout, private: bool) -> None:
        self._layout, self._rows = layout, 0
        self._sink = Sink(path, layout.compression, private)
        self._sink.write(encode.header(layout))

    def write(self, frame: pl.DataFrame) -> None:
        """Take the next records."""
        for piece in frame.iter_slices(_SLICE):
            if self._layout.format == "jsonl":
                self._sink.write(encode.json_lines(piece, self._layout))
            else:
                self._sink.write(encode.delimited(piece, self._layout, self._rows))
            self._rows += piece.height

    def finish(self) -> None:
        """Complete the bytes."""
        self._sink.finish()

    def commit(self) -> None:
        """Give the output its name."""
        self._sink.commit()

    def discard(self) -> None:
        """Leave nothing behind."""
        self._sink.discard()

    @property
    def temporary(self) -> Path:
        """Where the unfinished output is."""
        return self._sink.temporary

    @property
    def sha256(self) -> str:
        """The hash of the finished bytes."""
        return self._sink.sha256


class Writer:
    """Writes records to a file that exists only once `commit` was called; else nothing is left.

    Columns of the layout that a frame lacks are written empty; columns of a frame that the layout
    lacks are not written. With `private`, the file stays readable for its owner only. Without a path, the
    output is Parquet and stays in memory (`unfinished`).
    """

    def __init__(
        self,
        path: str | Path | None,
        layout: Layout,
        *,
        private: bool = False,
        never_replace: Iterable[object] = (),
    ) -> None:
        check_outputs([path], never_replace)
        self.layout = layout
        self._output = _output(path, layout, private)
        self._done = False

    def write(self, frame: pl.DataFrame) -> None:
        """Take the next records: a frame with canonical names."""
        if frame.height:
            self._output.write(frame)

    def close(self) -> None:
        """Complete the bytes, still under the temporary name."""
        self._output.finish()

    def commit(self) -> None:
        """Complete the bytes and give the file its name."""
        self._output.finish()
        self._output.commit()
        self._done = True

    @property
    def sha256(self) -> str:
        """The hash of the finished file's bytes, as packed; ask after `close`."""
        return self._output.sha256

    @property
    def unfinished(self) -> Path | bytes:
        """The file or the bytes that an audit can read after `close`, until `commit`."""
        return self._output.temporary

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._done:
            self._output.discard()


def _output(path: str | Path | None, layout: Layout, private: bool) -> Output:
    if path is None or layout.format == "parquet":
        return ParquetOutput(path, layout, private)
    if layout.format == "ubi":
        return UbiOutput(path, layout, private)
    return TextOutput(path, layout, private)


def write(
    log: Log | pl.DataFrame, path: str | Path, layout: Layout | None = None, *, private: bool = False
) -> str:
    """Write a whole log in one go, looking like its input where the path allows; gives the SHA-256."""
    frame = log.frame if isinstance(log, Log) else log
    if layout is None:
        like = log.layout if isinstance(log, Log) else None
        layout = layout_for(path, like=like, columns=[name for name in frame.columns if name != "row"])
    with Writer(path, layout, private=private) as writer:
        writer.write(frame)
        writer.commit()
        return writer.sha256

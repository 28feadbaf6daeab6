"""What a caller asks of `protect`, and how a log is read for it: in memory, or spooled to disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from querycloak import io
from querycloak.engines.pipeline import Stage
from querycloak.engines.replay import Spool, whole
from querycloak.errors import DataError
from querycloak.guarantees import numbered
from querycloak.log import Log, Skipped
from querycloak.registry import METHODS

Progress = Callable[[str, int, int | None], None]

#: Rows of a piece when a log is too large to be read at once.
PIECE_ROWS = 1_000_000
#: How many bytes in memory one byte of a file may become, by kind of file.
_SWELL = {"text": 4, "packed": 16}


def silent(step: str, done: int, total: int | None) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Request:
    """One call of `protect`, with everything that decides what comes out."""

    log: str
    output: str
    stages: list[Stage]
    truth: Path | None = None
    state: Path | None = None
    source: str | None = None
    seed: int | None = None
    secret_file: Path | None = None
    sign: Path | None = None
    dry_run: bool = False
    format: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    strict: bool = False
    piece_rows: int | None = None
    engine: str = "local"
    master: str = "local[*]"
    spark: Mapping[str, str] = field(default_factory=dict)
    progress: Progress = silent


class Reading:
    """The log of a request, to be replayed once and looked at again by the audit."""

    def __init__(self, request: Request, key: bytes) -> None:
        self._request, self._key = request, key
        self._spool: Spool | None = None
        self._log: Log | None = None
        self.skipped = Skipped()
        self.rows_read = 0
        self.layout: Any = None
        self.dropped_columns: tuple[str, ...] = ()

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Read the log and replay it in the order in which it happened."""
        if self._request.piece_rows is None and not _too_large(self._request.log):
            self._log = io.read(self._request.log, **self._options())
            self._note(self._log)
            yield from whole(self._log, self._key)
            return
        rows = self._request.piece_rows or PIECE_ROWS
        self._spool = Spool(folder_of(self._request.output), self._key)
        for piece in io.pieces(self._request.log, rows=rows, **self._options()):
            self._note(piece)
            self._spool.add(piece.frame)
            self._request.progress("read", self.rows_read, None)
        yield from self._spool.pieces(rows)

    def kept(self) -> Path:
        """Read the log into a private folder of Parquet files, for an engine that reads those; name it."""
        self._spool = Spool(folder_of(self._request.output), self._key)
        for piece in io.pieces(self._request.log, rows=PIECE_ROWS, **self._options()):
            self._note(piece)
            self._spool.keep(piece.frame)
            self._request.progress("read", self.rows_read, None)
        return self._spool.folder

    def original(self) -> pl.LazyFrame:
        """Give what was read, for the audit, as the numbers that audits compare; the texts are let go."""
        if self._log is not None:
            frame, self._log = self._log.frame, None
            names = [n for n in ("row", "user", "query", "time", "category") if n in frame.columns]
            few = [pl.col(n).cast(pl.Categorical) for n in names if n == "category"]
            return numbered(frame.lazy().select(names)).with_columns(few).collect().lazy()
        assert self._spool is not None
        return self._spool.scan()

    def close(self) -> None:
        """Remove what was spooled to disk."""
        if self._spool is not None:
            self._spool.close()

    def _options(self) -> dict[str, Any]:
        request = self._request
        return {
            "format": request.format,
            "mapping": request.mapping,
            "keep": request.keep,
            "strict": request.strict,
        }

    def _note(self, piece: Log) -> None:
        self.skipped.merge(piece.skipped)
        self.rows_read += piece.rows_read
        self.layout = piece.layout
        self.dropped_columns = piece.dropped_columns
        check_columns(self._request.stages, piece.frame.columns)


def check_columns(stages: list[Stage], columns: list[str]) -> None:
    """Refuse a log that lacks a column without which a method cannot work."""
    for stage in stages:
        for name in sorted(METHODS.get(stage.method).needs_for(stage.settings) - set(columns)):
            hint = (
                "`querycloak classify` adds it"
                if name == "category"
                else f"name it with `--map {name}=COLUMN`"
            )
            raise DataError(
                f"`{stage.method}` needs the column `{name}`, which the log does not have", hint=hint
            )


def folder_of(output: str) -> Path:
    """Say where a release is written: what is set aside meanwhile goes there too."""
    return Path.cwd() if output == "-" else Path(output).resolve().parent


def _too_large(log: str) -> bool:
    """Guess whether a log would take more than half of the memory that is free."""
    path = Path(log)
    if log == "-" or not path.is_file():
        return False
    packed = path.suffix in (".gz", ".zst", ".parquet")
    return path.stat().st_size * _SWELL["packed" if packed else "text"] > free_memory() // 2


def free_memory() -> int:
    """Say how many bytes this machine has left."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) * 1024
    except (OSError, StopIteration):
        return 4 << 30

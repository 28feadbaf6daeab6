"""Where the records of a release come from: a file, a `Log` or a table, replayed in time order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl

from querycloak import formats
from querycloak.audits.cells import comparable
from querycloak.audits.evidence import numbered
from querycloak.engines.pipeline import Stage
from querycloak.engines.time_order import Spool, whole
from querycloak.engines.user_ids import UserIds
from querycloak.environment import free_memory
from querycloak.errors import DataError, UsageError
from querycloak.formats import ReadOptions
from querycloak.guarantee import NotCheckable
from querycloak.log import CANONICAL, Log, Skipped
from querycloak.temporary_files import default_folder, remove_leftovers

Progress = Callable[[str, int, int | None], None]
#: What a log can be given as.
LogInput = Log | pl.DataFrame | pl.LazyFrame | str | Path

#: Rows of a piece when a log is too large to be read at once.
PIECE_ROWS: Final = 1_000_000
#: How many bytes in memory one byte of a file may become, by kind of file.
_SWELL: Final = {"text": 4, "packed": 16}
#: The columns of the original that audits compare.
_AUDITED: Final = ("row", *CANONICAL)


def silent(step: str, done: int, total: int | None) -> None:
    """Show no progress."""


def read_log(log: LogInput, options: ReadOptions) -> Log:
    """Return a log that is given as a path, a table or a `Log`; a `Log` keeps its row numbers."""
    return _read(log, options, UserIds())


def _read(log: LogInput, options: ReadOptions, users: UserIds) -> Log:
    if isinstance(log, Log):
        return users.apply(_checked(log, options))
    found = formats.read(log, **options.as_dict())
    options.check_usable(log, found.rows_read, found.skipped)
    return users.apply(found)


class LogSource:
    """A log to be replayed once and looked at again by the audit.

    Rows have the numbers of the caller's log: the ground truth refers to these.
    """

    def __init__(
        self,
        log: LogInput,
        options: ReadOptions | None = None,
        piece_rows: int | None = None,
        spool_folder: Path | None = None,
        progress: Progress = silent,
    ) -> None:
        self._given, self._options = log, options or ReadOptions()
        self._piece_rows, self._folder, self._progress = piece_rows, spool_folder, progress
        remove_leftovers(spool_folder or default_folder())
        self._spool: Spool | None = None
        self._log: Log | None = None
        self.users = UserIds()
        self.joined_users = 0
        self.skipped = Skipped()
        self.rows_read = 0
        self.layout: Any = None
        self.dropped_columns: tuple[str, ...] = ()

    def pieces(self, key: bytes, stages: Sequence[Stage] = ()) -> Iterator[pl.DataFrame]:
        """Yield the log in time order, with the searches found; `key` orders rows without a time."""
        if isinstance(self._given, Log) or (self._piece_rows is None and not _too_large(self._given)):
            self._log = _read(self._given, replace(self._options, least_usable=None), self.users)
            self._note(self._log, stages)
            self._check_usable()
            yield from whole(self._log, key, self._piece_rows if isinstance(self._given, Log) else None)
            return
        rows = self._piece_rows or PIECE_ROWS
        self._spool = Spool(self._folder, key)
        for piece in self._read_pieces(rows, stages):
            self._spool.add(piece.frame)
        self._check_usable()
        yield from self._spool.pieces(rows)

    def _read_pieces(self, rows: int, stages: Sequence[Stage]) -> Iterator[Log]:
        assert not isinstance(self._given, Log)
        for piece in map(self.users.apply, formats.pieces(self._given, rows=rows, **self._options.as_dict())):
            self._note(piece, stages)
            yield piece
            self._progress("read", self.rows_read, None)

    def to_parquet(self, key: bytes, stages: Sequence[Stage]) -> Path:
        """Write the log to Parquet files in a private folder, for an engine that sorts by itself."""
        self._spool = Spool(self._folder, key)
        if isinstance(self._given, Log):
            log = _read(self._given, self._options, self.users)
            self._note(log, stages)
            self._spool.keep(log.frame)
        else:
            for piece in self._read_pieces(PIECE_ROWS, stages):
                self._spool.keep(piece.frame)
        self._check_usable()
        return self._spool.folder

    def original(self) -> pl.LazyFrame:
        """Return what audits compare, as numbers; the texts are freed."""
        if self._log is not None:
            frame, self._log = self._log.frame, None
            self.joined_users = self.users.joined(frame.lazy())
            wanted = dict.fromkeys((*_AUDITED, *self._options.keep))
            names = [name for name in wanted if name in frame.columns]
            short = {"category": pl.col("category").cast(pl.Categorical), "url": comparable("url")}
            short = {name: column for name, column in short.items() if name in names}
            return numbered(frame.lazy().select(names)).with_columns(**short).collect().lazy()
        assert self._spool is not None
        self.joined_users = self.users.joined(self._spool.scan())
        return self._spool.scan()

    def query_texts(self) -> pl.LazyFrame:
        """Return `row` and `query` of the original as texts; a file is read again."""
        if self._spool is not None:
            return self._spool.scan().select("row", "query")
        if isinstance(self._given, str) and self._given == "-":
            raise NotCheckable("standard input cannot be read again")
        return (
            read_log(self._given, replace(self._options, least_usable=None))
            .frame.lazy()
            .select("row", "query")
        )

    @cached_property
    def sha256(self) -> str | None:
        """The hash of the input file; None if the log is no file."""
        if not isinstance(self._given, str | Path) or not Path(self._given).is_file():
            return None
        with Path(self._given).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def close(self) -> None:
        """Remove what was spooled to disk."""
        if self._spool is not None:
            self._spool.close()

    def _check_usable(self) -> None:
        self._options.check_usable(self._given, self.rows_read, self.skipped)

    def _note(self, piece: Log, stages: Sequence[Stage]) -> None:
        self.skipped.merge(piece.skipped)
        self.rows_read += piece.rows_read
        self.layout = piece.layout
        self.dropped_columns = piece.dropped_columns
        check_columns(stages, piece.frame.columns)


def _checked(log: Log, options: ReadOptions) -> Log:
    """Return the columns of a log that a release may have; the others are reported."""
    if missing := [name for name in options.keep if name not in log.frame.columns]:
        raise UsageError(f"the log has no column `{missing[0]}` to keep")
    if options.mapping or options.format:
        raise UsageError(
            "a `Log` has its columns already", hint="`format` and `mapping` are for files and tables"
        )
    named = {"row", *CANONICAL, *options.keep}
    others = tuple(name for name in log.frame.columns if name not in named)
    frame = log.frame.drop(others)
    layout = formats.frame_layout(log.frame, log.layout, options.keep)
    dropped = tuple(dict.fromkeys((*log.dropped_columns, *others)))
    return Log(frame, layout, log.skipped, frame.height + log.skipped.total, dropped)


def check_columns(stages: Sequence[Stage], columns: Sequence[str]) -> None:
    """Raise DataError if the log lacks a column that a method requires."""
    for stage in stages:
        for name in sorted(stage.traits.requires - set(columns)):
            hint = (
                "`querycloak classify` adds it"
                if name == "category"
                else f"name it with `--map {name}=COLUMN`"
            )
            raise DataError(
                f"`{stage.method}` needs the column `{name}`, which the log does not have", hint=hint
            )


def _too_large(log: pl.DataFrame | pl.LazyFrame | str | Path) -> bool:
    """Whether a file would probably take more than half of the free memory."""
    if not isinstance(log, str | Path) or str(log) == "-" or not Path(log).is_file():
        return False
    path = Path(log)
    packed = path.suffix in (".gz", ".zst", ".parquet")
    return path.stat().st_size * _SWELL["packed" if packed else "text"] > free_memory() // 2

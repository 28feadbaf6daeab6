"""What stays over releases of a source: its ledger, and the books of methods that keep one."""

from __future__ import annotations

import fcntl
import hashlib
import io as std_io
import json
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.errors import DataError, Refused, UsageError
from querycloak.keys import write_private
from querycloak.ledger import Ledger, default_state
from querycloak.log import IntArray
from querycloak.protector import Protector
from querycloak.registry import METHODS

#: What earlier releases of a source left to a method: a book, nothing, or one that is not here.
Book = pl.DataFrame | Literal["missing"] | None


def open_book(protector: Protector, book: Book) -> IntArray:
    """Let a method carry on with what earlier releases left behind; give the people in it."""
    if isinstance(book, pl.DataFrame):
        return protector.open_book(book)
    if book is not None:
        protector.miss_book()
    return np.empty(0, np.int64)


class SourceState:
    """The state of one named source: where its ledger and its books are, and what was released before."""

    def __init__(self, source: str, folder: Path | None) -> None:
        self.source, self._given = source, folder is not None
        self._folder = folder or default_state()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.ledger = Ledger(self._folder)
        self.earlier = self.ledger.of_source(source)
        self._lock: int | None = None

    @classmethod
    def of(cls, source: str | None, folder: Path | None) -> SourceState | None:
        """Find the state of a named source; a log of no named source is nobody's second release."""
        if source is not None:
            return cls(source, folder)
        if folder is not None:
            raise UsageError(
                "`--state` needs to know whose state it is", hint="name the log's source with `--source`"
            )
        return None

    def _path(self, protector: Protector) -> Path:
        name = hashlib.sha256(self.source.encode()).hexdigest()[:16]
        return self._folder / f"{name}.{protector.book_name or protector.name}.parquet"

    def open_books(self, stages: list[Stage], pipeline: Pipeline) -> list[Book]:
        """Give every method its book; refuse a second release of a source whose book is not here."""
        books = self._books(stages, pipeline)
        for protector, book in zip(pipeline, books, strict=True):
            pipeline.meet(open_book(protector, book))
        return books

    def _books(self, stages: list[Stage], pipeline: Pipeline) -> list[Book]:
        found: list[Book] = [None] * len(stages)
        for place, (stage, protector) in enumerate(zip(stages, pipeline, strict=True)):
            if not protector.keeps_book:
                continue
            if getattr(stage.settings, "scope", "source") != "source":
                raise Refused(
                    "one cohort per topic is an experiment for a single release: it keeps no book",
                    hint="leave out `--source`, or use `scope=source`",
                )
            path = self._path(protector)
            if protector.book_name and any(_renames(before) for before in stages[: stages.index(stage)]):
                raise Refused(
                    "what people spend is kept by their own ids, and an earlier method gives them other ones",
                    hint=f"use `labels=fresh` with `{stage.method}` itself",
                )
            if path.exists():
                found[place] = self._read(path, stage)
            elif protector.book_name and self._was_released(protector.book_name):
                found[place] = "missing"
            elif not protector.book_name and self._was_released(stage.method):
                raise Refused(
                    f"this source was released with `{stage.method}` before, and its book is not here: "
                    "groups drawn anew over the same people would meet in their authors",
                    hint="give the `--state` of the earlier release",
                )
        return found

    def lock(self) -> None:
        """Keep others from releasing the same source until this release is done: both would read one book."""
        name = hashlib.sha256(self.source.encode()).hexdigest()[:16]
        descriptor = os.open(self._folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise Refused(
                "another release of this source is being made", hint="try again when it is done"
            ) from None
        self._lock = descriptor

    def unlock(self) -> None:
        """Let others release the source."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _read(self, path: Path, stage: Stage) -> pl.DataFrame:
        try:
            book = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError):
            raise DataError(f"the book of `{stage.method}` cannot be read") from None
        try:
            kept = json.loads(path.with_suffix(".json").read_text("utf-8"))
        except (OSError, ValueError):
            raise DataError(f"the book of `{stage.method}` cannot be read") from None
        now = {name: stage.settings.as_dict()[name] for name in kept}
        if kept != now:
            raise Refused(
                f"`{stage.method}` was used with {kept} for this source before",
                hint="cohorts are for good: use the same settings, or another source",
            )
        return book

    def close_books(self, stages: list[Stage], pipeline: Pipeline, books: list[pl.DataFrame | None]) -> None:
        """Keep the books for the next release."""
        for stage, protector, book in zip(stages, pipeline, books, strict=True):
            if book is None:
                continue
            buffer = std_io.BytesIO()
            book.write_parquet(buffer)
            path, fixed = self._path(protector), {}
            if not protector.book_name:
                fixed = {n: v for n, v in stage.settings.as_dict().items() if n in ("k", "shards", "scope")}
            if self._given or protector.book_name:
                write_private(path, buffer.getvalue())
                write_private(path.with_suffix(".json"), json.dumps(fixed).encode())

    def note(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Enter a release into the ledger, and the source into the list of those ever released here."""
        added = self.ledger.append(entry)
        home = default_state()
        if home.resolve() != self._folder.resolve():
            Ledger(home).append({"source": self.source, "elsewhere": True, "methods": entry["methods"]})
        return added

    def _was_released(self, method: str) -> bool:
        """Ask both ledgers: the state's own, and the one of this account, which knows other states too."""
        entries = self.earlier + Ledger(default_state()).of_source(self.source)
        parts = [part["method"] for entry in entries for part in entry["methods"]]
        return any(method in (name, METHODS.get(name).book_name) for name in parts)


def _renames(stage: Stage) -> bool:
    return getattr(stage.settings, "labels", "keep") == "fresh"

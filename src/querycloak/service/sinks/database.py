"""The SQLite file of the state folder: released lines, profiles and idempotency keys."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final

from querycloak.errors import DataError, DiskFull, QueryCloakError, StoreUnavailable
from querycloak.files import private_folder, sync_folder

#: Commits do not wait for the disk, `sync` does: replay restores what a power cut loses.
_PRAGMAS: Final = (
    "page_size=16384",
    "auto_vacuum=INCREMENTAL",
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "cache_size=-65536",
    "wal_autocheckpoint=2000",
)
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class Database:
    """A file that only its owner can read: one writer, any number of readers, also in other processes."""

    def __init__(self, path: Path, patience: float = 10.0) -> None:
        """`patience`: seconds to wait for another process that writes."""
        self.path, self._patience = path, patience
        self._writing, self._reading = Lock(), Lock()
        with self._errors():
            private_folder(path.parent)
            # SQLite gives its other files (-wal, -shm) the mode of this one.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.fchmod(descriptor, 0o600)
            os.close(descriptor)
            self._writer = self._connect()
            self._reader = self._connect()
            sync_folder(path.parent)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def create(self, tables: str) -> None:
        """Create tables that are missing."""
        with self._errors(), self._writing:
            self._writer.executescript(tables)

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query, as of the last commit."""
        with self._errors(), self._reading:
            return self._reader.execute(query, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit all changes of the block, or none."""
        with self._errors(), self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:  # after some failures SQLite has rolled back by itself
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def erasure(self) -> Iterator[sqlite3.Connection]:
        """Commit all changes of the block; overwrite what is deleted, in the file and in SQLite's log."""
        with self._errors(), self._writing:
            self._writer.execute("PRAGMA secure_delete=ON")
        try:
            with self.transaction() as connection:
                yield connection
        finally:
            with self._errors(), self._writing, self._reading:
                self._writer.execute("PRAGMA secure_delete=OFF")
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def vacuum(self) -> None:
        """Return free pages to the file system."""
        with self._errors(), self._writing:
            # `execute` would stop after the first page: sqlite3 takes the statement for one without rows.
            self._writer.executescript("PRAGMA incremental_vacuum")

    def sync(self) -> None:
        """Return when all commits are durable.

        They are in SQLite's own log, and a checkpoint syncs the file before it empties that log. A failure is
        final: a second sync can succeed without writing what was lost.
        """
        try:
            with open(f"{self.path}-wal", "rb") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(
                f"`{self.path}` could not be forced to disk: {error.strerror}",
                hint="start again when the disk works: replay writes what is missing",
            ) from None

    def close(self) -> None:
        """Close both connections; SQLite then moves its log into the file."""
        with self._writing, self._reading, closing(self._writer), closing(self._reader):
            pass

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Translate SQLite's errors; its own messages are not shown, they can quote a value."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._translate(error) from None
        except OSError as error:
            raise DataError(f"`{self.path}` cannot be opened: {error.strerror}") from None

    def _translate(self, error: sqlite3.Error) -> QueryCloakError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return DiskFull(f"no room to write `{self.path}`", hint="make room; it continues by itself")
        if code in _BUSY:
            return StoreUnavailable(
                f"`{self.path}` is locked by another program for more than {self._patience:g} seconds"
            )
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        return DataError(f"`{self.path}` cannot be used as a database: {name}")

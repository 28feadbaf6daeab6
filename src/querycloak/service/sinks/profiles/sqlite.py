"""Profiles in an SQLite file: no server, one file, as durable as the disk."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock

from querycloak.errors import DataError, DiskFull, QueryCloakError, StoreUnavailable
from querycloak.service.sinks.profiles.store import (
    Counts,
    Profiles,
    added_up,
    by_frequency,
    first_levels,
    storable,
)
from querycloak.service.wal.disk import private_folder

_TABLES = """
CREATE TABLE IF NOT EXISTS querycloak_stream
    (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS querycloak_profile
    (stream INTEGER NOT NULL, label TEXT NOT NULL, category TEXT NOT NULL, count INTEGER NOT NULL,
     PRIMARY KEY (stream, label, category)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS querycloak_total
    (stream INTEGER NOT NULL, category TEXT NOT NULL, count INTEGER NOT NULL,
     PRIMARY KEY (stream, category)) STRICT, WITHOUT ROWID;
"""
_ADD = """INSERT INTO querycloak_profile VALUES (?, ?, ?, ?)
          ON CONFLICT DO UPDATE SET count = count + excluded.count"""
_ADD_TOTAL = """INSERT INTO querycloak_total VALUES (?, ?, ?)
                ON CONFLICT DO UPDATE SET count = count + excluded.count"""
_PROFILE = "SELECT category, count FROM querycloak_profile WHERE stream = ? AND label = ?"
#: Counts cannot be made again once released lines are gone, so each commit waits for the disk.
_DURABLE = ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON")
_FAST = ("cache_size=-65536", "wal_autocheckpoint=8000")
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class SqliteProfiles(Profiles):
    """Profiles of one stream in a file that only its owner reads."""

    def __init__(self, path: Path, stream: str = "default", patience: float = 10.0) -> None:
        self._path = path
        self._patience = patience
        self._writing, self._reading = Lock(), Lock()
        with self._told():
            private_folder(path.parent)
            # SQLite gives its other files (-wal, -shm) the mode of this one.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.fchmod(descriptor, 0o600)
            os.close(descriptor)
            self._writer, self._reader = self._connect(), self._connect()
            self._stream, self.last = self._register(stream)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in (*_DURABLE, *_FAST):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _register(self, stream: str) -> tuple[int, int]:
        self._writer.executescript(_TABLES)
        with self._transaction() as database:
            database.execute("INSERT OR IGNORE INTO querycloak_stream (name, last) VALUES (?, 0)", (stream,))
            (found,) = database.execute("SELECT id, last FROM querycloak_stream WHERE name = ?", (stream,))
        return int(found[0]), int(found[1])

    def add(self, upto: int, counts: Counts) -> None:
        """Count in one transaction."""
        rows = added_up(counts)
        totals = first_levels((category, more) for _, category, more in rows)
        with self._told(), self._transaction() as database:
            ((last,),) = database.execute("SELECT last FROM querycloak_stream WHERE id = ?", (self._stream,))
            if self._is_new(upto, last):
                database.executemany(_ADD, ((self._stream, *row) for row in rows))
                database.executemany(_ADD_TOTAL, ((self._stream, *row) for row in totals))
                database.execute("UPDATE querycloak_stream SET last = ? WHERE id = ?", (upto, self._stream))
        self.last = max(last, upto)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Do all of it or nothing, after whoever else writes to the file."""
        with self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:  # after some failures SQLite has rolled back by itself
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn SQLite's failures into ours; its own messages are not shown, they may quote a value."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._failure(error) from None
        except OSError as error:
            raise DataError(f"`{self._path}` cannot be opened: {error.strerror}") from None

    def _failure(self, error: sqlite3.Error) -> QueryCloakError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return DiskFull(f"no room to write `{self._path}`", hint="make room; it goes on by itself")
        if code in _BUSY:
            return StoreUnavailable(
                f"`{self._path}` is locked by another program for more than {self._patience:g} seconds"
            )
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        return DataError(f"`{self._path}` cannot be used as a database of profiles: {name}")

    def _rows(self, query: str, *values: object) -> list[tuple[str, int]]:
        with self._told(), self._reading:
            return self._reader.execute(query, (self._stream, *values)).fetchall()

    def of(self, label: str) -> dict[str, int] | None:
        """Read one label's rows."""
        return by_frequency(self._rows(_PROFILE, storable(label))) or None

    def totals(self) -> dict[str, int]:
        """Read the totals, which are kept up to date by every change."""
        return by_frequency(self._rows("SELECT category, count FROM querycloak_total WHERE stream = ?"))

    def forget(self, label: str) -> int:
        """Remove the rows, and what is left of them in the file and in its log."""
        key = (self._stream, storable(label))
        with self._told(), self._transaction() as database:
            found = database.execute(_PROFILE, key).fetchall()
            less = [(count, self._stream, category) for category, count in first_levels(found)]
            database.execute("DELETE FROM querycloak_profile WHERE stream = ? AND label = ?", key)
            database.executemany(
                "UPDATE querycloak_total SET count = count - ? WHERE stream = ? AND category = ?", less
            )
            database.execute("DELETE FROM querycloak_total WHERE count = 0")
        with self._told(), self._writing, self._reading:
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return sum(count for _, count in found)

    def close(self) -> None:
        """Close both connections; SQLite then empties its log into the file."""
        with self._writing, self._reading, closing(self._writer), closing(self._reader):
            pass

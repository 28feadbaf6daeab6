"""Profiles of labels: how often each label was released with each category, counted exactly once."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import polars as pl

from querycloak.errors import DataError, ParameterError
from querycloak.service.sinks.database import Database

T = TypeVar("T")
#: Label, category, and how many records more.
Row = tuple[str, str, int]
#: Records that are collected before they are counted and stored, and for how many seconds at most.
RECORDS: Final = 200_000
SECONDS: Final = 2.0
_SQLITE: Final = "sqlite:///"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS querycloak_stream
    (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS querycloak_profile
    (stream INTEGER NOT NULL, label TEXT NOT NULL, category TEXT NOT NULL, count INTEGER NOT NULL,
     PRIMARY KEY (stream, label, category)) STRICT, WITHOUT ROWID;
"""
_ADD: Final = """INSERT INTO querycloak_profile VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET count = count + excluded.count"""


class ConcurrentWriter(DataError):
    """Another service has counted lines that are in these counts too; nothing was counted."""

    code = "overtaken"


class ProfileStore:
    """A store of profiles; this one stores nothing but the position.

    `last` is the number of the last released line that is counted. It is stored in the transaction of
    the counts: so both are there after a crash, or neither.
    """

    last = 0

    def add(self, upto: int, counts: Sequence[Row]) -> None:
        """Count the lines after `last` up to `upto`: all of them or, on an error, none.

        Lines that are counted already (`upto` ≤ `last`) are ignored. So after `Unavailable` repeat the call
        with the same counts: they may have been taken, and only the answer was lost.
        """
        self.last = max(self.last, upto)

    def counts_of(self, label: str) -> dict[str, int] | None:
        """Return a label's counts by category, the most frequent first; None if it has none."""
        return None

    def delete(self, label: str) -> int:
        """Delete a label's profile. Return how many records it counted."""
        return 0

    def sync(self) -> None:
        """Return when all counts are durable."""

    def close(self) -> None:
        """Close the database."""


class SqlProfiles(ProfileStore, ABC):
    """Profiles of one stream in a database; several streams share it without seeing each other."""

    _stream: int
    _mark: ClassVar[str] = "?"  # of a value in a query
    _lock_row: ClassVar[str] = ""

    @abstractmethod
    def _write(self, work: Callable[[Any], T], *, erase: bool = False) -> T:
        """Run work in one transaction. `erase`: overwrite what it deletes."""

    @abstractmethod
    def _read(self, query: str, values: Sequence[Any]) -> list[tuple[str, int]]:
        """Return pairs, as of the last commit."""

    @abstractmethod
    def _add_rows(self, database: Any, rows: list[Row]) -> None:
        """Add to the profiles."""

    def _sql(self, query: str) -> str:
        return query.replace("?", self._mark)

    def add(self, upto: int, counts: Sequence[Row]) -> None:
        """Count in one transaction."""
        rows = sum_counts(counts)
        self.last = self._write(lambda database: self._add(database, upto, rows))

    def _add(self, database: Any, upto: int, rows: list[Row]) -> int:
        """Count lines unless they are counted already; return the number of the last.

        The caller collected them from `self.last` on. When the database has more (a commit whose answer
        was lost, or a second service), counts that go further would count some lines twice.
        """
        last = self._position(database)
        if upto > last != self.last:
            raise ConcurrentWriter(
                f"the profiles are counted up to line {last:,} already, not {self.last:,}",
                hint="repeat a failed call as it was; two services must not share one stream's name",
            )
        if upto <= last:
            return last
        self._add_rows(database, rows)
        query = self._sql("UPDATE querycloak_stream SET last = ? WHERE id = ?")
        database.execute(query, (upto, self._stream))
        return upto

    def _position(self, database: Any) -> int:
        """Return up to which line the stream is counted; other sessions wait until this transaction ends."""
        query = self._sql("SELECT last FROM querycloak_stream WHERE id = ?") + self._lock_row
        ((last,),) = database.execute(query, (self._stream,)).fetchall()
        return int(last)

    def counts_of(self, label: str) -> dict[str, int] | None:
        """Read one label's rows."""
        query = "SELECT category, count FROM querycloak_profile WHERE stream = ? AND label = ?"
        rows = self._read(self._sql(query), (self._stream, storable(label)))
        return dict(sorted(rows, key=lambda row: (-row[1], row[0]))) or None

    def delete(self, label: str) -> int:
        """Delete the rows; SQLite overwrites them at once, PostgreSQL after its next vacuum."""
        return self._write(lambda database: self._delete(database, storable(label)), erase=True)

    def _delete(self, database: Any, label: str) -> int:
        self._position(database)  # wait for an `add` in another session
        query = "DELETE FROM querycloak_profile WHERE stream = ? AND label = ? RETURNING count"
        found = database.execute(self._sql(query), (self._stream, label)).fetchall()
        return sum(count for (count,) in found)


class SqliteProfiles(SqlProfiles):
    """Profiles in SQLite."""

    def __init__(self, database: Database, stream: str = "default", *, owned: bool = False) -> None:
        """`owned`: `close` closes the database too."""
        self._database, self._owned = database, owned
        try:
            database.create(_TABLES)
            with database.transaction() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO querycloak_stream (name, last) VALUES (?, 0)", (stream,)
                )
            ((self._stream, self.last),) = database.read(
                "SELECT id, last FROM querycloak_stream WHERE name = ?", (stream,)
            )
        except BaseException:
            self.close()
            raise

    def _write(self, work: Callable[[Any], T], *, erase: bool = False) -> T:
        with self._database.erasure() if erase else self._database.transaction() as connection:
            return work(connection)

    def _read(self, query: str, values: Sequence[Any]) -> list[tuple[str, int]]:
        return self._database.read(query, values)

    def _add_rows(self, database: Any, rows: list[Row]) -> None:
        database.executemany(_ADD, ((self._stream, *row) for row in rows))

    def sync(self) -> None:
        """Return when all counts are durable."""
        self._database.sync()

    def close(self) -> None:
        """Close the database if nothing else uses it."""
        if self._owned:
            self._database.close()


def open_store(
    url: str, stream: str = "default", patience: float = 10.0, *, database: Database | None = None
) -> ProfileStore:
    """Return the profiles of one stream: `sqlite:///FILE`, `postgresql://USER@HOST/DATABASE`, or `none`.

    `sqlite` alone is the `database` of the state folder. Raise StoreUnavailable if the database does not
    answer within `patience` seconds.
    """
    if url == "none":
        return ProfileStore()
    if url == "sqlite" and database is not None:
        return SqliteProfiles(database, stream)
    if url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        return SqliteProfiles(Database(Path(url.removeprefix(_SQLITE)), patience), stream, owned=True)
    if url.partition(":")[0] in {"postgresql", "postgres"}:
        from querycloak.service.sinks.profiles_postgres import PostgresProfiles

        return PostgresProfiles(url, stream, patience)
    raise ParameterError(  # the address may hold a password, so it is not repeated
        "the address of the profiles is neither `sqlite:///FILE` nor `postgresql://USER@HOST/DATABASE`"
    )


class ProfileCounter:
    """Collects released records in memory and adds them to the store now and then.

    A crash loses no count: replay counts again what the store lacks.
    """

    def __init__(self, store: ProfileStore, clock: Callable[[], float] = time.monotonic) -> None:
        self.store, self._clock = store, clock
        self._parts: list[pl.DataFrame] = []
        self._records, self._upto, self._since = 0, store.last, clock()
        #: Counts that the store refused: it may have them nevertheless, so it gets the same ones again.
        self._refused: tuple[int, list[Row]] | None = None

    def add(self, released: pl.DataFrame) -> None:
        """Collect released records that the store does not have."""
        first, last = released["offset"][0], int(released["offset"][-1])
        new = released[max(0, max(self._upto, self.store.last) + 1 - first) :]
        if not new.height:
            return
        if not self._parts:
            self._since = self._clock()
        self._parts.append(pl.DataFrame([new["user"], new["category"]]))
        self._records += new.height
        self._upto = last

    def due(self) -> bool:
        """Whether it is time to flush."""
        if self._refused:
            return True
        return self._records >= RECORDS or (bool(self._parts) and self._clock() - self._since >= SECONDS)

    def delete(self, label: str) -> None:
        """Delete a label's profile, with what is not stored yet."""
        self.flush()
        self.store.delete(label)

    def flush(self) -> None:
        """Store what was refused before, then what was collected since."""
        while self._refused or self._parts:
            self._refused = self._refused or self._count()
            self.store.add(*self._refused)
            self._refused = None

    def sync(self) -> None:
        """Store everything, and return when it is durable."""
        self.flush()
        self.store.sync()

    def _count(self) -> tuple[int, list[Row]]:
        counted = pl.concat(self._parts).drop_nulls("user").group_by("user", "category").len()
        self._parts, self._records = [], 0
        return self._upto, counted.with_columns(pl.col("category").fill_null("")).rows()


def storable(text: str) -> str:
    """Replace the one character that PostgreSQL cannot store, so that all stores return the same."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


def sum_counts(counts: Sequence[Row]) -> list[Row]:
    """Return each label and category once, in order: neighbours in the index are written together."""
    total: Counter[tuple[str, str]] = Counter()
    for label, category, more in counts:
        total[storable(label), storable(category)] += more
    return sorted((label, category, more) for (label, category), more in total.items())

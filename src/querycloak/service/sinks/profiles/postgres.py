"""Profiles in PostgreSQL, for several services and for whoever wants to query them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from querycloak.service.sinks.profiles.link import Link, Patience
from querycloak.service.sinks.profiles.store import (
    Counts,
    Profiles,
    added_up,
    by_frequency,
    first_levels,
    storable,
)

if TYPE_CHECKING:
    from psycopg import Connection

#: Many services may start at once, and `IF NOT EXISTS` alone does not stand that.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('querycloak profiles'))"
_TABLES = """
CREATE TABLE IF NOT EXISTS querycloak_stream
    (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, last bigint NOT NULL);
CREATE TABLE IF NOT EXISTS querycloak_profile
    (stream integer NOT NULL, label text NOT NULL, category text NOT NULL, count bigint NOT NULL,
     PRIMARY KEY (stream, label, category));
CREATE TABLE IF NOT EXISTS querycloak_total
    (stream integer NOT NULL, category text NOT NULL, count bigint NOT NULL,
     PRIMARY KEY (stream, category));
"""
_FRESH = """CREATE TEMPORARY TABLE querycloak_more
            (label text, category text, more bigint) ON COMMIT DROP"""
_ADD = """INSERT INTO querycloak_profile AS known
          SELECT %s, label, category, more FROM querycloak_more
          ON CONFLICT (stream, label, category) DO UPDATE SET count = known.count + excluded.count"""
_ADD_TOTAL = """INSERT INTO querycloak_total AS known VALUES (%s, %s, %s)
                ON CONFLICT (stream, category) DO UPDATE SET count = known.count + excluded.count"""
_PROFILE = "SELECT category, count FROM querycloak_profile WHERE stream = %s AND label = %s"
_TOTALS = "SELECT category, count FROM querycloak_total WHERE stream = %s"
#: Somebody who looks at a page should not wait as long as the worker does.
_READ_PATIENCE = 2.0


class PostgresProfiles(Profiles):
    """Profiles of one stream in a database that others may share.

    When the server restarts, calls wait and connect again; after `patience` seconds they give up with
    `StoreUnavailable`. A commit whose answer was lost is found out by the position, which commits with it.
    """

    def __init__(self, url: str, stream: str = "default", patience: float = 10.0) -> None:
        self._writer = Link(url, Patience(patience))
        self._reader = Link(url, Patience(min(patience, _READ_PATIENCE)))
        try:
            self._stream, self.last = self._writer.run(lambda database: _register(database, stream))
        except BaseException:
            self.close()
            raise

    def add(self, upto: int, counts: Counts) -> None:
        """Copy the counts to the server, and merge them in the same transaction."""
        rows = added_up(counts)
        self.last = self._writer.run(lambda database: self._add(database, upto, rows))

    def _add(self, database: Connection, upto: int, rows: list[tuple[str, str, int]]) -> int:
        last = _position(database, self._stream)
        if not self._is_new(upto, last):
            return last
        database.execute(_FRESH)
        with database.cursor() as cursor, cursor.copy("COPY querycloak_more FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        database.execute(_ADD, (self._stream,))
        totals = first_levels((category, more) for _, category, more in rows)
        with database.cursor() as cursor:
            cursor.executemany(_ADD_TOTAL, [(self._stream, *row) for row in totals])
        database.execute("UPDATE querycloak_stream SET last = %s WHERE id = %s", (upto, self._stream))
        return upto

    def of(self, label: str) -> dict[str, int] | None:
        """Read one label's rows."""
        return by_frequency(self._rows(_PROFILE, storable(label))) or None

    def totals(self) -> dict[str, int]:
        """Read the totals, which are kept up to date by every change."""
        return by_frequency(self._rows(_TOTALS))

    def _rows(self, query: str, *values: str) -> list[tuple[str, int]]:
        return self._reader.run(lambda database: _pairs(database, query, self._stream, *values))

    def forget(self, label: str) -> int:
        """Remove the rows; the server clears what is left of them at its next vacuum."""
        return self._writer.run(lambda database: self._forget(database, storable(label)))

    def _forget(self, database: Connection, label: str) -> int:
        _position(database, self._stream)  # wait for an `add` in another session
        found = _pairs(database, _PROFILE, self._stream, label)
        database.execute(
            "DELETE FROM querycloak_profile WHERE stream = %s AND label = %s", (self._stream, label)
        )
        with database.cursor() as cursor:
            cursor.executemany(
                _ADD_TOTAL, [(self._stream, name, -less) for name, less in first_levels(found)]
            )
        database.execute("DELETE FROM querycloak_total WHERE stream = %s AND count = 0", (self._stream,))
        return sum(count for _, count in found)

    def close(self) -> None:
        """Close both connections."""
        self._writer.close()
        self._reader.close()


def _register(database: Connection, stream: str) -> tuple[int, int]:
    database.execute(_LOCK)
    if database.execute("SELECT to_regclass('querycloak_total')").fetchone() == (None,):
        database.execute(_TABLES)  # only then: a role that may not create tables can use those that are there
    database.execute(
        "INSERT INTO querycloak_stream (name, last) VALUES (%s, 0) ON CONFLICT (name) DO NOTHING", (stream,)
    )
    found = database.execute("SELECT id, last FROM querycloak_stream WHERE name = %s", (stream,)).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])


def _position(database: Connection, stream: int) -> int:
    """Read how far a stream is counted, and keep others from counting it until this transaction ends."""
    found = database.execute(
        "SELECT last FROM querycloak_stream WHERE id = %s FOR UPDATE", (stream,)
    ).fetchone()
    assert found is not None
    return int(found[0])


def _pairs(database: Connection, query: str, *values: str | int) -> list[tuple[str, int]]:
    return [(str(name), int(count)) for name, count in database.execute(query, values)]

"""Profiles in PostgreSQL, over connections that survive a restart of the server."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from querycloak.errors import DataError, ParameterError, StoreUnavailable, import_extra
from querycloak.service.sinks.profiles import Row, SqlProfiles

if TYPE_CHECKING:
    from psycopg import Connection

T = TypeVar("T")
#: A transaction that waits for a lock of another session stops after this, and is tried again.
_WAIT_FOR_OTHERS = "SET LOCAL lock_timeout = '2s'"

#: Several services can start at once, and `IF NOT EXISTS` alone is not enough for that.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('querycloak profiles'))"
_TABLES = """
CREATE TABLE IF NOT EXISTS querycloak_stream
    (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, last bigint NOT NULL);
CREATE TABLE IF NOT EXISTS querycloak_profile
    (stream integer NOT NULL, label text NOT NULL, category text NOT NULL, count bigint NOT NULL,
     PRIMARY KEY (stream, label, category));
"""
_FRESH = """CREATE TEMPORARY TABLE querycloak_more
            (label text, category text, more bigint) ON COMMIT DROP"""
_ADD = """INSERT INTO querycloak_profile AS known
          SELECT %s, label, category, more FROM querycloak_more
          ON CONFLICT (stream, label, category) DO UPDATE SET count = known.count + excluded.count"""
#: A reader of the page does not wait as long as the worker does.
_READ_PATIENCE = 2.0
#: Seconds between two tries, which double up to the longest.
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0


class PostgresProfiles(SqlProfiles):
    """Profiles in a database that several services can share.

    When the server restarts, calls wait and connect again; after `patience` seconds they raise
    `StoreUnavailable`. A commit whose answer was lost is recognised by the position, which commits with it.
    """

    _mark = "%s"
    _lock_row = " FOR UPDATE"

    def __init__(self, url: str, stream: str = "default", patience: float = 10.0) -> None:
        self._writer = RetryingConnection(url, patience)
        self._reader = RetryingConnection(url, min(patience, _READ_PATIENCE))
        try:
            self._stream, self.last = self._writer.run(lambda database: _register(database, stream))
        except BaseException:
            self.close()
            raise

    def _write(self, work: Callable[[Any], T], *, erase: bool = False) -> T:
        return self._writer.run(work)

    def _read(self, query: str, values: Sequence[Any]) -> list[tuple[str, int]]:
        return self._reader.run(lambda database: database.execute(query, values).fetchall())

    def _add_rows(self, database: Any, rows: list[Row]) -> None:
        database.execute(_FRESH)
        with database.cursor() as cursor, cursor.copy("COPY querycloak_more FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        database.execute(_ADD, (self._stream,))

    def close(self) -> None:
        """Close both connections."""
        self._writer.close()
        self._reader.close()


def _register(database: Connection, stream: str) -> tuple[int, int]:
    database.execute(_LOCK)
    if database.execute("SELECT to_regclass('querycloak_profile')").fetchone() == (None,):
        database.execute(_TABLES)  # only then: a role that may not create tables can use those that are there
    database.execute(
        "INSERT INTO querycloak_stream (name, last) VALUES (%s, 0) ON CONFLICT (name) DO NOTHING", (stream,)
    )
    found = database.execute("SELECT id, last FROM querycloak_stream WHERE name = %s", (stream,)).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])


class RetryingConnection:
    """Runs transactions, one at a time; one that fails because the server is away is run again."""

    def __init__(self, url: str, patience: float) -> None:
        self._psycopg = import_extra("psycopg", "postgres", "profiles in PostgreSQL")
        self._patience = patience
        self._settings = self._parse(url)
        self._connection: Connection | None = None
        self._lock = Lock()

    def _parse(self, url: str) -> dict[str, Any]:
        try:
            given = self._psycopg.conninfo.conninfo_to_dict(url)
        except self._psycopg.Error:  # whose message quotes the address, password and all
            raise ParameterError("the address of the PostgreSQL database cannot be understood") from None
        # A server that vanished must not hold a call for longer than the patience.
        seconds = max(math.ceil(self._patience), 2)
        ours = {"connect_timeout": seconds, "tcp_user_timeout": 1000 * seconds}
        return {"application_name": "querycloak", **ours, **given}

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction. Raise StoreUnavailable after the patience, with nothing done."""
        give_up = time.monotonic() + self._patience
        if not self._lock.acquire(timeout=self._patience):
            raise self._unavailable("another call waits for it already")
        try:
            return self._try(work, give_up)
        except self._psycopg.Error as error:  # its message may quote a value, so only its code is shown
            state = error.sqlstate or type(error).__name__
            raise DataError(f"PostgreSQL refused the profiles (error {state})") from None
        finally:
            self._lock.release()

    def _try(self, work: Callable[[Connection], T], give_up: float) -> T:
        wait = _FIRST_WAIT
        while True:
            try:
                return self._once(work)
            except (self._psycopg.OperationalError, self._psycopg.InterfaceError) as error:
                self._drop()
                if time.monotonic() + wait > give_up:
                    raise self._unavailable(self._masked(str(error))) from None
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _once(self, work: Callable[[Connection], T]) -> T:
        if self._connection is None:
            # No prepared statements: a pooler can use another session for each transaction.
            self._connection = self._psycopg.connect(
                **self._settings, autocommit=True, prepare_threshold=None
            )
        with self._connection.transaction():
            self._connection.execute(_WAIT_FOR_OTHERS)
            return work(self._connection)

    def _unavailable(self, why: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"PostgreSQL was not available for {self._patience:g} seconds: {why}",
            hint="nothing is lost: it is tried again",
        )

    def _masked(self, text: str) -> str:
        """Return the first line of libpq's message, without the password."""
        password = str(self._settings.get("password") or "")
        line = text.strip().partition("\n")[0]
        return line.replace(password, "***") if password else line

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._drop()

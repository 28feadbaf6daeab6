"""One connection to PostgreSQL that comes back after the server was away, and never tells the password."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from querycloak.errors import DataError, MissingExtra, ParameterError, StoreUnavailable

if TYPE_CHECKING:
    from psycopg import Connection

T = TypeVar("T")
#: Who waits for a lock of another session gives up after this, and tries again while there is patience.
_WAIT_FOR_OTHERS = "SET LOCAL lock_timeout = '2s'"


@dataclass(frozen=True)
class Patience:
    """How long to try, and how long to wait between tries."""

    seconds: float
    first_wait: float = 0.05
    longest_wait: float = 1.0


class Link:
    """Runs transactions, one at a time; one that fails because the server is away is run again."""

    def __init__(self, url: str, patience: Patience) -> None:
        self._psycopg = _psycopg()
        self._patience = patience
        self._settings = self._parsed(url)
        self._connection: Connection | None = None
        self._lock = Lock()

    def _parsed(self, url: str) -> dict[str, Any]:
        try:
            given = self._psycopg.conninfo.conninfo_to_dict(url)
        except self._psycopg.Error:  # whose message quotes the address, password and all
            raise ParameterError("the address of the PostgreSQL database cannot be understood") from None
        # A server that vanished without a word must not hold a call for longer than the patience says.
        seconds = max(math.ceil(self._patience.seconds), 2)
        ours = {"connect_timeout": seconds, "tcp_user_timeout": 1000 * seconds}
        return {"application_name": "querycloak", **ours, **given}

    def run(self, work: Callable[[Connection], T]) -> T:
        """Do some work in one transaction; give up after the patience, with nothing done."""
        give_up = time.monotonic() + self._patience.seconds
        if not self._lock.acquire(timeout=self._patience.seconds):
            raise self._unavailable("another call waits for it already")
        try:
            return self._tried(work, give_up)
        except self._psycopg.Error as error:  # its message may quote a value, so only its code is shown
            state = error.sqlstate or type(error).__name__
            raise DataError(f"PostgreSQL refused the profiles (error {state})") from None
        finally:
            self._lock.release()

    def _tried(self, work: Callable[[Connection], T], give_up: float) -> T:
        wait = self._patience.first_wait
        while True:
            try:
                return self._once(work)
            except (self._psycopg.OperationalError, self._psycopg.InterfaceError) as error:
                self._drop()
                if time.monotonic() + wait > give_up:
                    raise self._unavailable(self._masked(str(error))) from None
            time.sleep(wait)
            wait = min(2 * wait, self._patience.longest_wait)

    def _once(self, work: Callable[[Connection], T]) -> T:
        if self._connection is None:
            # No prepared statements: a pooler in between may give each transaction another session.
            self._connection = self._psycopg.connect(
                **self._settings, autocommit=True, prepare_threshold=None
            )
        with self._connection.transaction():
            self._connection.execute(_WAIT_FOR_OTHERS)
            return work(self._connection)

    def _unavailable(self, why: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"PostgreSQL was not available for {self._patience.seconds:g} seconds: {why}",
            hint="nothing is lost: it is tried again",
        )

    def _masked(self, text: str) -> str:
        """Take the first line of what libpq says, without the password should it ever be in there."""
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


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("postgres", "profiles in PostgreSQL") from None
    return psycopg

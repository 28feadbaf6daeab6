"""Profiles of labels, kept in a database: SQLite in a file, or PostgreSQL; the address says which."""

from __future__ import annotations

from pathlib import Path

from querycloak.errors import ParameterError
from querycloak.service.sinks.profiles.store import Counts, NoProfiles, Overtaken, Profiles

__all__ = ["NONE", "Counts", "Overtaken", "Profiles", "open_store"]

_SQLITE = "sqlite:///"
#: Instead of an address: no profiles are kept.
NONE = "none"


def open_store(url: str, stream: str = "default", patience: float = 10.0) -> Profiles:
    """Open the profiles of one stream: `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`, or `none`.

    Several streams share a database without seeing each other. What a busy or absent database cannot do
    within `patience` seconds is a `StoreUnavailable`, and can be asked for again.
    """
    scheme = url.partition(":")[0]
    if url == NONE:
        return NoProfiles()
    if url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        from querycloak.service.sinks.profiles.sqlite import SqliteProfiles

        return SqliteProfiles(Path(url.removeprefix(_SQLITE)), stream, patience)
    if scheme in {"postgresql", "postgres"}:
        from querycloak.service.sinks.profiles.postgres import PostgresProfiles

        return PostgresProfiles(url, stream, patience)
    # The address may hold a password, so it is not repeated.
    raise ParameterError(
        "the address of the profiles is neither `sqlite:///FILE` nor `postgresql://USER@HOST/DATABASE`"
    )

"""A small service in the test's process: synthetic records in, one step at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from querycloak.service.ingest.group_commit import PendingRequest
from querycloak.service.ingest.parse import parse
from querycloak.service.service import Service
from querycloak.service.settings import setup
from tests.support import logs

#: Planted in users and queries: must never be seen outside.
SECRET_USER, SECRET_QUERY = "zzuserplantedzz", "zzqueryplantedzz"


def made_up(users: int = 120, seed: int = 7) -> list[bytes]:
    """Return a synthetic log as lines, in order of time, with planted users and queries."""
    log = logs.made_up(users=users, seed=seed).frame.sort("time")
    planted = log.with_columns(
        user=pl.lit(SECRET_USER) + pl.col("user"),
        query=pl.when(pl.col("row") % 50 == 0).then(pl.lit(SECRET_QUERY)).otherwise(pl.col("query")),
    )
    names = ("user", "query", "time", "rank", "url")
    return planted.select(names).write_ndjson().encode().splitlines(keepends=True)


@contextmanager
def running(
    folder: Path, method: str = "cohort", options: dict[str, Any] | None = None, **settings: Any
) -> Iterator[Service]:
    """Run a service; it certifies only when a test calls for it."""
    texts = {name: str(value) for name, value in settings.items()}
    service = Service(setup({"state": folder, **(options or {})}, [method], texts, seed=1, environment={}))
    service.open()
    service.start()
    try:
        yield service
    finally:
        service.stop()


def send(service: Service, lines: list[bytes], at_once: int = 400) -> None:
    """Send lines in pieces, and wait until all of them were applied."""
    for start in range(0, len(lines), at_once):
        service.submit(
            PendingRequest("records", parse(b"".join(lines[start : start + at_once]), lines=True))
        ).result(30)
    service.worker.run_on_worker(lambda: None).result(60)

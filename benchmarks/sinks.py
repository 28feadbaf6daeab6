"""Sinks of the service: released lines appended, forced to disk and read; counts merged into profiles.

Beside the released log runs a plain file: the same bytes written to one file and forced
to disk as often. Clock and processor are both given: the first depends on the disk and on who else works.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from querycloak.errors import QueryCloakError
from querycloak.service.sinks.database import Database
from querycloak.service.sinks.file_sink import FileSink
from querycloak.service.sinks.profiles import open_store
from querycloak.service.sinks.released_log import ReleasedLog

BATCH = 5_000
ROWS = 50_000  # of one transaction
LABELS, CATEGORIES = 200_000, 600

Batches = list[tuple[int, bytes, int]]


def batches(lines: int) -> Batches:
    """Generate released lines of about 160 bytes."""
    rest = b'"time":"2006-03-01T07:17:12Z","category":"Arts/Music/Choirs","query":"%s"}\n' % (b"q" * 60)
    made = []
    for first in range(1, lines + 1, BATCH):
        last = min(first + BATCH, lines + 1)
        text = b"".join(b'{"offset":%d,"user":"p%05d",' % (n, n % 99_999) + rest for n in range(first, last))
        made.append((first, text, last - first))
    return made


@contextmanager
def timed(count: int, into: dict[str, Any]) -> Iterator[None]:
    """Store how many were done a second, and the processor time of each."""
    clock, processor = time.perf_counter(), time.process_time()
    yield
    into["per_second"] = round(count / (time.perf_counter() - clock))
    into["cpu_us_each"] = round(1e6 * (time.process_time() - processor) / count, 3)


def plain(path: Path, made: Batches) -> dict[str, Any]:
    """Write the same bytes to one file, forced to disk after each batch."""
    found: dict[str, Any] = {}
    with path.open("wb", buffering=0) as file, timed(sum(count for *_, count in made), found):
        for _, text, _ in made:
            file.write(text)
            os.fdatasync(file.fileno())
    return found


def appended(sink: ReleasedLog | FileSink, made: Batches) -> dict[str, Any]:
    """Append and force to disk after each batch."""
    found: dict[str, Any] = {}
    with timed(sum(count for *_, count in made), found):
        for first, text, count in made:
            sink.append(first, text, count)
            sink.sync()
    return found


def file_sink(path: Path) -> FileSink:
    """Return an open file sink."""
    sink = FileSink(path)
    sink.open()
    return sink


def read_through(log: ReleasedLog, limit: int) -> int:
    """Read everything, so many lines at a time."""
    after = 0
    while data := log.read(after, limit):
        after += data.count(b"\n")
    return after


def readings(folder: Path, lines: int) -> dict[str, Any]:
    """Read all by one reader and by eight at once; the first reads with an empty cache."""
    found: dict[str, Any] = {}
    log = ReleasedLog(Database(folder))
    for name, readers, limit in (("first", 1, 1000), ("again", 1, 1000), ("eight_readers", 8, 1000)):
        found[name] = {}
        with timed(readers * lines, found[name]), ThreadPoolExecutor(readers) as pool:
            assert set(pool.map(lambda _, limit=limit: read_through(log, limit), range(readers))) == {lines}
    found["small_reads"] = {}
    places = np.random.default_rng(1).integers(0, lines - 10, 5_000).tolist()
    with timed(len(places), found["small_reads"]):
        for after in places:
            log.read(after, 10)
    return found


def profile_rows(url: str, parts: int) -> dict[str, Any]:
    """Merge parts of counts, each in one durable transaction, then read single profiles."""
    from tests.unit.service.sinks.profile_store import total

    draw, found = np.random.default_rng(7), {"merge": {}, "read": {}}
    made = []
    for _ in range(parts):
        label = draw.integers(0, LABELS, ROWS).tolist()
        category = draw.zipf(1.3, ROWS) % CATEGORIES
        pairs = zip(label, category.tolist(), strict=True)
        made.append([(f"p{one:08d}", f"Top{other % 15}/Part/{other}", 1) for one, other in pairs])
    store = open_store(url)
    try:
        with timed(parts * ROWS, found["merge"]):
            for number, rows in enumerate(made, start=1):
                store.add(number, rows)
        with timed(2000, found["read"]):
            for number in range(2000):
                store.counts_of(f"p{number:08d}")
        assert total(store) == parts * ROWS
    finally:
        store.close()
    return found


def postgres_rows(parts: int) -> dict[str, Any] | str:
    """Do the same with PostgreSQL, if this machine can start one; processor time is of this side alone."""
    from tests.support.servers.postgres import LocalPostgres

    try:
        with LocalPostgres() as server:
            return profile_rows(server.url, parts)
    except QueryCloakError as reason:
        return f"left out: {reason.message}"


def measure(scale: float) -> dict[str, Any]:
    """Measure with so many lines and counts."""
    lines, parts = max(int(1_000_000 * scale), 20_000), max(int(10 * scale), 1)
    made = batches(lines)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs: dict[str, Callable[[], Any]] = {
            "plain_write": lambda: plain(folder / "plain", made),
            "released_append": lambda: appended(ReleasedLog(Database(folder / "released.sqlite")), made),
            "file_sink_append": lambda: appended(file_sink(folder / "sink"), made),
            "released_read": lambda: readings(folder / "released.sqlite", lines),
            "profiles_sqlite": lambda: profile_rows(f"sqlite:///{folder}/profiles.db", parts),
            "profiles_postgres": lambda: postgres_rows(parts),
        }
        found = {"lines": lines, "rows": parts * ROWS} | {what: run() for what, run in runs.items()}
    speed = {
        what: found[what]["per_second"] for what in ("plain_write", "released_append", "file_sink_append")
    }
    found["append_to_plain"] = round(speed["released_append"] / speed["plain_write"], 3)
    found["sink_to_plain"] = round(speed["file_sink_append"] / speed["plain_write"], 3)
    return found

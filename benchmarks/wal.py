"""The write-ahead log beside a plain file that gets the same bytes and the same syncs.

Both write the same payloads in the same groups, one sync a group, in turns, so that a busy disk slows both
down alike. Seconds are of the clock, since a disk is waited for; processor seconds stand beside them.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from querycloak.errors import MissingExtra
from querycloak.service.wal.cipher import Cipher
from querycloak.service.wal.wal import WriteAheadLog

FRAME = 10_000
#: Frames in one append, and how many appends are made of it.
GROUPS = {1: 400, 10: 300, 100: 100, 1000: 20}
TURNS = 5
Append = Callable[[list[bytes]], object]


@contextmanager
def plain(folder: Path) -> Iterator[Append]:
    """Write to one file and sync: what durability costs without a journal."""
    descriptor = os.open(folder / "plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(payloads: list[bytes]) -> None:
        os.write(descriptor, b"".join(payloads))
        os.fdatasync(descriptor)

    yield append
    os.close(descriptor)


@contextmanager
def wal(folder: Path, cipher: Cipher | None = None) -> Iterator[Append]:
    """Write to a journal."""
    journal = WriteAheadLog(folder, cipher)
    journal.open()
    yield journal.append
    journal.close()


def timed(append: Append, payloads: list[bytes], times: int) -> tuple[float, float]:
    """Append the same group several times; return the seconds of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(times):
        append(payloads)
    return time.perf_counter() - clock, time.process_time() - processor


def compare(group: int, appends: int, cipher: Cipher | None) -> dict[str, Any]:
    """Append to both in turns; return the sums."""
    payloads = [os.urandom(FRAME) for _ in range(group)]
    spent: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=".") as place:
        folder = Path(place)
        with plain(folder) as one, wal(folder / "j") as two, wal(folder / "k", cipher) as three:
            ways = {"plain": one, "journal": two} | ({"encrypted": three} if cipher else {})
            for append in ways.values():
                append(payloads)  # files are made outside of the timing
            for _ in range(TURNS):
                for name, append in ways.items():
                    found = timed(append, payloads, max(1, appends // TURNS))
                    spent[name] = [a + b for a, b in zip(spent.get(name, [0.0, 0.0]), found, strict=True)]
    return lines(spent, group, max(1, appends // TURNS) * TURNS)


def lines(spent: dict[str, list[float]], group: int, appends: int) -> dict[str, Any]:
    """Return rates, and each way beside the plain file."""
    return {
        name: {
            "appends_per_second": round(appends / clock),
            "frames_per_second": round(appends * group / clock),
            "megabytes_per_second": round(appends * group * FRAME / clock / 1e6, 1),
            "processor_microseconds_per_frame": round(1e6 * processor / appends / group, 1),
            "rate_to_plain_file": round(spent["plain"][0] / clock, 2),
        }
        for name, (clock, processor) in spent.items()
    }


def reading(frames: int) -> dict[str, Any]:
    """Open a journal, which checks every byte, and read it, in seconds of the processor."""
    with tempfile.TemporaryDirectory(dir=".") as place:
        with wal(Path(place)) as append:
            for _ in range(max(1, frames // 1000)):
                append([os.urandom(FRAME)] * 1000)
        journal, begin = WriteAheadLog(Path(place)), time.process_time()
        journal.open()
        checked = time.process_time()
        count = sum(1 for _ in journal.read_after(0))
        done = time.process_time()
        journal.close()
    size = count * FRAME / 1e6
    return {
        "megabytes": round(size, 1),
        "open_megabytes_per_processor_second": round(size / (checked - begin)),
        "read_megabytes_per_processor_second": round(size / (done - checked)),
    }


def measure(scale: float) -> dict[str, Any]:
    """Measure appends of several sizes, then recovery."""
    try:
        cipher = Cipher(bytes(32))
    except MissingExtra:
        cipher = None
    found: dict[str, Any] = {"frame_bytes": FRAME}
    for group, appends in GROUPS.items():
        found[f"frames_per_append {group}"] = compare(group, int(appends * scale), cipher)
    return found | {"recovery": reading(int(20_000 * scale))}

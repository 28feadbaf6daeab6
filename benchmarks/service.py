"""How fast the live service takes records in durably, beside the same HTTP stack that only writes them down.

python -m benchmarks.service [SCALE]

Both run on loopback, in processes of their own, and get the same requests over as many connections, in turns.
`taken` counts records until the last acknowledgement, `through` until all of them were looked at and what may
be shown had been released. Small requests cost mostly HTTP, large ones mostly what is done with each record:
so the ratio depends on their size, and several are tried. The paced run sends 10,000 records a second and
looks at how long acknowledgements take.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
from tests.support.service_process import LiveService

import querycloak as qc
from benchmarks.service_load import Sent, request, send

#: Records in a request, and connections.
SHAPES = ((10, 32), (100, 16), (1000, 16))
TURNS = 3
MOST_REQUESTS = 4000
PACE = 10_000


def lines(users: int, *, categories: bool) -> list[bytes]:
    """Make up records as a search engine would send them."""
    log = qc.generate(users=users, seed=1)
    frame = log.frame.sort("time", maintain_order=True).select("user", "query", "time", "rank", "url")
    if categories:
        frame = frame.with_columns(category=pl.lit("Sports/Soccer"))
    rows = frame.with_columns(pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).to_dicts()
    kept = ({name: value for name, value in row.items() if value is not None} for row in rows)
    return [json.dumps(row).encode() + b"\n" for row in kept]


def requests(records: list[bytes], size: int) -> list[bytes]:
    """Pack records into requests."""
    return [request("/v1/records", b"".join(records[n : n + size])) for n in range(0, len(records), size)]


@contextmanager
def plain(folder: Path) -> Iterator[tuple[str, int]]:
    """Run the stack that only writes; give its address and the number of its process."""
    command = [sys.executable, "-m", "benchmarks.service_plain", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
        process.kill()


def checked(sent: Sent) -> Sent:
    if set(sent.statuses) != {202}:
        raise SystemExit(f"not all was taken: {sent.statuses}")
    return sent


def processor(process: int) -> float:
    """Give the processor seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def race(folder: Path, records: list[bytes], size: int, connections: int, *options: str) -> dict[str, float]:
    """Send the same requests to both, in turns; give records a second, and ours to theirs."""
    packed, many = requests(records, size), len(records)
    found: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        found.setdefault(name, []).append(value)

    for _ in range(TURNS):
        own = Path(tempfile.mkdtemp(dir=folder))
        with plain(own) as (address, process):
            send(address, packed[:20], 4)
            used = processor(process)
            note("plain records/s", many / checked(send(address, packed, connections)).seconds)
            note("plain CPU us/record", 1e6 * (processor(process) - used) / many)
        with LiveService(own / "ours", "--seed", "1", *options) as service:
            send(service.address, packed[:20], 4)
            service.settled()
            used, begun = processor(service.process), time.perf_counter()
            note("taken records/s", many / checked(send(service.address, packed, connections)).seconds)
            service.settled()
            note("through records/s", many / (time.perf_counter() - begun))
            note("CPU us/record", 1e6 * (processor(service.process) - used) / many)
    middle = {name: median(values) for name, values in found.items()}
    for name in ("taken", "through"):
        middle[f"{name} / plain"] = middle[f"{name} records/s"] / middle["plain records/s"]
    return middle


def paced(folder: Path, records: list[bytes], size: int = 100) -> dict[str, float]:
    """Send at a steady pace; give how long acknowledgements take."""
    packed = requests(records[: 20 * PACE], size)
    with LiveService(folder / "paced", "--seed", "1") as service:
        send(service.address, packed[:20], 4)
        sent = checked(send(service.address, packed[20:], 16, pace=PACE / size))
    return {f"p{round(100 * q)} ms": 1000 * sent.quantile(q) for q in (0.5, 0.99, 1.0)}


def measure(users: int) -> dict[str, Any]:
    given, bare = lines(users, categories=True), lines(users, categories=False)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size, connections in SHAPES:
            some = given[: size * MOST_REQUESTS]
            found[f"{size} in a request, with categories"] = race(folder, some, size, connections)
        found["1000 in a request, classified here"] = race(folder, bare, 1000, 16, "-o", "backlog=100000000")
        found["10,000 a second, 100 in a request"] = paced(folder, bare)
    return found


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    for name, figures in measure(int(8000 * scale)).items():
        print(name, {key: round(value, 3) for key, value in figures.items()}, flush=True)


if __name__ == "__main__":
    main()

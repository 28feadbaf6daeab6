"""Reading and writing logs by format: seconds and peak memory."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import querycloak as qc
from benchmarks.common import in_own_process, peak_gigabytes

FORMATS = {"aol": "log.txt", "csv": "log.csv", "jsonl": "log.jsonl", "parquet": "log.parquet"}
WORDS = 5000


def convert(source: str, target: str) -> dict[str, Any]:
    """Read a file and write it in the format of the other's name."""
    reader, writer = qc.read, qc.write  # imported outside of the timing
    begin = time.perf_counter()
    log = reader(source)
    read, peak_read = time.perf_counter(), peak_gigabytes()
    writer(log, target)
    return {
        "rows": len(log),
        "read_seconds": read - begin,
        "write_seconds": time.perf_counter() - read,
        "read_peak_mb": 1000 * peak_read,
        "peak_mb": 1000 * peak_gigabytes(),
    }


def make_log(rows: int, path: Path) -> None:
    """Write a synthetic AOL file: sorted by user, three words a query, a click on every other row."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(1)
    words = pl.Series([f"w{n:x}" for n in range(WORDS)])

    def draw() -> pl.Series:
        return words.gather(rng.integers(0, WORDS, rows))

    clicked = pl.Series(rng.random(rows) < 0.5)
    frame = pl.DataFrame(
        {
            "AnonID": np.sort(rng.integers(1, max(rows // 25, 2), rows)),
            "Query": draw() + " " + draw() + " " + draw(),
            "QueryTime": pl.from_epoch(pl.Series(1_141_171_200 + rng.integers(0, 90 * 86_400, rows))),
            "ItemRank": pl.Series(rng.integers(1, 20, rows)).set(~clicked, None),
            "ClickURL": ("http://www." + draw() + ".example").set(~clicked, None),
        }
    )
    frame.write_csv(path, separator="\t", quote_style="never", datetime_format="%Y-%m-%d %H:%M:%S")


def measure(scale: float) -> dict[str, Any]:
    """Read each format and write it again, each in a process of its own."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        origin = folder / "origin.txt"
        make_log(int(5_000_000 * scale), origin)
        for kind, file in FORMATS.items():
            source, target = folder / file, folder / f"again-{file}"
            in_own_process(convert, str(origin), str(source))
            found[kind] = in_own_process(convert, str(source), str(target))
            source.unlink()
            target.unlink()
    return found

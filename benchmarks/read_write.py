"""How fast logs are read and written, and how much memory that takes, by format."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FORMATS = {"aol": "log.txt", "csv": "log.csv", "jsonl": "log.jsonl", "parquet": "log.parquet"}
WORDS = 5000

_JOB = """
import json, resource, sys, time
from querycloak import formats
source, target, kind = sys.argv[1:]
begin = time.perf_counter()
log = formats.read(source)
read = time.perf_counter()
peak_read = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if target:
    formats.write(log, target, formats.Layout.for_output(target, kind, like=log.layout))
done = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"rows": len(log), "read_seconds": read - begin, "write_seconds": done - read,
                  "read_peak_mb": peak_read / 1024, "peak_mb": peak / 1024}))
"""


def make_log(rows: int, path: Path) -> None:
    """Write a made-up AOL file: sorted by user, three words a query, a click on every other row."""
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


def run(source: Path, target: Path | str, kind: str) -> dict[str, Any]:
    """Read and write in a process of its own, so that the peak is of this work alone."""
    command = [sys.executable, "-c", _JOB, str(source), str(target), kind]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def measure(rows: int, folder: str | Path) -> dict[str, Any]:
    """Read each format and write it back; seconds and peak memory in MB by format."""
    origin = Path(folder) / "origin.txt"
    make_log(rows, origin)
    results: dict[str, Any] = {}
    for kind, name in FORMATS.items():
        source, target = Path(folder) / name, Path(folder) / f"again-{name}"
        run(origin, source, kind)
        results[kind] = run(source, target, kind)
        source.unlink()
        target.unlink()
    origin.unlink()
    return results


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, scratch), indent=2))

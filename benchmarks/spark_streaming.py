"""What a lane of a streaming query costs: its work, what its state takes, and what staying alive saves.

    python -m benchmarks.spark_streaming [METHOD ...]

No Spark is started: this is what a Python worker does. One of eight lanes gets its share of a million
records in forty micro-batches.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import polars as pl

import querycloak as qc
from querycloak.spark.stage_worker import StreamWorker
from querycloak.spark.state_store import LEAST
from querycloak.spark.streaming import plan_of
from querycloak.spark.transfer import pack, put_in_lanes, unpack

#: Settings of each method, and how many micro-batches of how many records.
SETTINGS: dict[str, dict[str, Any]] = {
    "cohort": {"k": 10, "shards": 8},
    "swap": {"k": 10},
    "frequent-only": {"k": 10},
}
BATCHES, RECORDS = 40, 25_000


def made_up(records: int) -> pl.DataFrame:
    frame = qc.generate(records // 25, seed=1, categories=True).frame.sort("time").head(records)
    return frame.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))


def measure(method: str, log: pl.DataFrame, batches: int = BATCHES) -> dict[str, float]:
    """Run one of eight lanes; time its steps at the end, when its state is largest."""
    columns = [name for name in log.columns if name != "row"]
    plan = plan_of([method], columns, 8, 1, None, "", SETTINGS[method])
    run, journal, since, kept, whole = StreamWorker(plan, 0), 0, 0, 0, 0
    packing = working = freezing = 0.0
    came = 0
    for number in range(batches):
        piece = log[number * log.height // batches : (number + 1) * log.height // batches]
        arrow = piece.with_columns(pl.col("time").to_physical()).to_arrow(
            compat_level=pl.CompatLevel.oldest()
        )
        start = time.perf_counter()
        found = [
            batch.column("payload").to_pylist()[batch.column("lane").to_pylist().index(0)]
            for batch in put_in_lanes(plan, arrow.to_batches())
            if 0 in batch.column("lane").to_pylist()
        ]
        packing += time.perf_counter() - start
        for payload in found:
            start = time.perf_counter()
            rows = unpack(payload)
            data = pack(rows)
            run.push(rows)
            working += time.perf_counter() - start
            came, since = came + rows.height, since + len(data)
            if since <= max(kept, LEAST):
                journal += len(data)
            else:
                start = time.perf_counter()
                kept, since = len(run.dump()), 0
                freezing += time.perf_counter() - start
                journal += kept
            whole += len(run.dump())
    frozen = run.dump()
    start = time.perf_counter()
    StreamWorker.load(plan, 0, frozen)
    thawing = time.perf_counter() - start
    return {
        "records": came,
        "pack_seconds_a_million": packing / log.height * 1e6,
        "lane_seconds_a_million": working / came * 1e6,
        "snapshot_seconds_a_million": freezing / came * 1e6,
        "state_bytes": len(frozen),
        "written_bytes_a_record": journal / came,
        "written_bytes_a_record_without_journal": whole / came,
        "seconds_to_make_again": thawing,
        "held": run.held,
    }


def main() -> None:
    log = made_up(BATCHES * RECORDS)
    for method in sys.argv[1:] or SETTINGS:
        print(method)
        for name, value in measure(method, log).items():
            print(f"  {name:40} {value:,.3f}")


if __name__ == "__main__":
    main()

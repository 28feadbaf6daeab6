"""One machine and Spark, in their parts, at 1, 2, 4 and 8 times the size; and a streaming worker.

Both engines read the same Parquet file and write one; each run is a process of its own, one after the other.
At the two smaller sizes Spark's parts are found by running the work up to each of them and throwing the
result away, so that each is what its step adds. Seconds are of the clock, on two cores (`local[2]`);
memory is that of all processes of a run, at its peak. `swap` also runs on a log that has 30 % of its
records in one category. `python -m benchmarks.sizing` writes the page from the stored figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import querycloak as qc
from benchmarks.common import command_of

SCALES = (1, 2, 4, 8)
SETTINGS = {"cohort": {"k": "10"}, "swap": {"k": "10", "level": "1"}}
BASE = 2_500_000
SKEWED = "Shopping"
#: Settings of each method, and how many micro-batches of how many records.
STREAM_SETTINGS: dict[str, dict[str, Any]] = {
    "cohort": {"k": 10, "shards": 8},
    "swap": {"k": 10},
    "frequent-only": {"k": 10},
}
BATCHES, RECORDS = 40, 25_000


def base_log(records: int, folder: Path) -> Path:
    """Write a log once; larger ones are copies of it with other users."""
    path = folder / f"base-{records}.parquet"
    if not path.exists():
        made = qc.generate(max(records // 37, 10), seed=1, categories=True).frame.head(records)
        made.select("user", "query", "time", "category").write_parquet(path)
    return path


def scaled(base: Path, scale: int, folder: Path, skewed: bool = False) -> Path:
    """Write the log `scale` times, each time with other users, a little later."""
    path = folder / f"log-{scale}{'-skewed' if skewed else ''}.parquet"
    if path.exists():
        return path
    category = pl.col("category")
    if skewed:
        third = pl.int_range(pl.len()) % 10 < 3
        category = pl.when(third).then(pl.lit(SKEWED)).otherwise(category).alias("category")
    copies = [
        pl.scan_parquet(base).with_columns(
            pl.col("user") + f"-{copy}", pl.col("time") + pl.duration(seconds=37 * copy), category
        )
        for copy in range(scale)
    ]
    pl.concat(copies).with_row_index("row").cast({"row": pl.Int64}).sink_parquet(path)
    return path


def run_local(path: str, method: str) -> dict[str, Any]:
    """Protect with the local engine, without its audit: Spark's DataFrames have none either."""
    from querycloak import formats
    from querycloak.dictionary import Dictionaries
    from querycloak.engines import local
    from querycloak.engines.pipeline import Pipeline, parse_stages
    from querycloak.engines.time_order import Spool

    log, parts = Path(path), dict[str, float]()
    began = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal began
        parts[name] = parts.get(name, 0.0) + time.perf_counter() - began
        began = time.perf_counter()

    stages = parse_stages([method], SETTINGS[method])
    local.warm_up(stages)
    lap("start")
    pipeline, released = Pipeline(stages, bytes(32), Dictionaries()), 0
    spool = Spool(log.parent, bytes(32))
    layout = None
    for piece in formats.pieces(str(log), rows=1_000_000):
        spool.add(piece.frame)
        layout = piece.layout
    lap("read and sort")
    out = log.with_name(f"local-{method}.parquet")
    with formats.Writer(str(out), formats.Layout.for_output(str(out), like=layout)) as writer:
        for part in local.run(pipeline, spool.pieces(1_000_000)):
            lap("protect")
            writer.write(part.frame)
            released += part.frame.height
            lap("write")
        writer.close()
        writer.commit()
    lap("write")
    spool.close()
    return {"parts": parts, "released": released}


def run_spark(path: str, method: str, memory: str, steps: str) -> dict[str, Any]:
    """Protect on Spark into a Parquet file; with `steps`, then again up to each step."""
    from querycloak.engines.pipeline import parse_stages
    from querycloak.spark import batch
    from querycloak.spark.session import start_session

    log, began = Path(path), time.perf_counter()
    folder = tempfile.mkdtemp(dir=log.parent)
    spark = start_session("local[2]", {"spark.driver.memory": memory, "spark.local.dir": folder})
    parts = {"start": time.perf_counter() - began}
    rows = spark.read.parquet(str(log)).selectExpr("* EXCEPT (time)", "unix_micros(time) AS time")
    began = time.perf_counter()
    run = batch.start(parse_stages([method], SETTINGS[method]), bytes(32), rows)
    parts["count and slice"] = time.perf_counter() - began
    out = log.with_name(f"spark-{method}.parquet")
    run.released().write.mode("overwrite").parquet(str(out))
    whole = time.perf_counter() - began
    if steps == "steps":
        parts |= _steps(rows, run, whole - parts["count and slice"])
    released = spark.read.parquet(str(out)).count()
    spark.stop()
    return {"parts": parts, "whole": whole, "released": released}


def _steps(rows: Any, run: Any, whole: float) -> dict[str, float]:
    """Return what each step adds, by running the work up to it and throwing the result away."""
    from querycloak.spark import batch, time_slices

    def timed(frame: Any) -> float:
        start = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - start

    scan = timed(rows)
    placed = rows.withColumn("_moment", rows["time"])
    slices = time_slices.cut(placed, run.plan.rows)
    by_time = placed.withColumn("_slice", slices.number())
    by_time = by_time.repartitionById(len(slices.before), by_time["_slice"])
    shuffled = timed(by_time)
    schema = batch._schema(placed, run.plan.columns, batch._PLACED)
    ranked = by_time.mapInArrow(partial(time_slices.place, run.plan, slices, schema), schema)
    with_places = timed(ranked)
    split = ranked.repartitionById(run.plan.parts, ranked["_lane"]).sortWithinPartitions("_seq", "row")
    sorted_by_key = timed(split)
    protected = timed(run.result)
    return {
        "scan": scan,
        "shuffle by time": shuffled - scan,
        "places (Python)": with_places - shuffled,
        "shuffle by key, sort": sorted_by_key - with_places,
        "protect (Python)": protected - sorted_by_key,
        "write": whole - protected,
    }


def child(run: Callable[..., Any], *arguments: str) -> dict[str, Any]:
    """Run one engine in a process of its own, and watch the memory of all its processes."""
    process = subprocess.Popen(command_of(run, *arguments), stdout=subprocess.PIPE, text=True)
    peak = [0]
    watching = threading.Thread(target=_watch, args=(process, peak), daemon=True)
    watching.start()
    text, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{arguments} failed")
    return json.loads(text.splitlines()[-1]) | {"peak_mb": round(peak[0] / 2**20)}


def _watch(process: subprocess.Popen[str], peak: list[int]) -> None:
    while process.poll() is None:
        peak[0] = max(peak[0], _memory(process.pid))
        time.sleep(0.2)


def _memory(root: int) -> int:
    """Return the memory of a process and all below it; shared memory counts in part (PSS)."""
    below, total = {root}, 0
    parents = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(
                    Path(entry.path, "stat").read_text().rpartition(")")[2].split()[1]
                )
            except OSError:
                continue
    grown = True
    while grown:
        fresh = {one for one, parent in parents.items() if parent in below} - below
        below |= fresh
        grown = bool(fresh)
    for one in below:
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
        except (OSError, StopIteration):
            continue
    return total


def measure(scale: float) -> dict[str, Any]:
    """Run both engines on all sizes; at full scale the last one has 20 million records."""
    with tempfile.TemporaryDirectory() as folder:
        return measure_sizes(int(BASE * scale), Path(folder))


def measure_sizes(records: int, folder: Path) -> dict[str, Any]:
    """Run both engines on 1, 2, 4 and 8 times the records; `swap` also on a skewed log."""
    found: dict[str, Any] = {"base": records, "runs": []}
    base = base_log(records, folder)
    cases = [(method, scale, False) for scale in SCALES for method in SETTINGS]
    cases.append(("swap", SCALES[-1], True))
    for method, scale, skewed in cases:
        log = scaled(base, scale, folder, skewed)
        size = int(pl.scan_parquet(log).select(pl.len()).collect().item())
        local = child(run_local, str(log), method)
        spark = child(run_spark, str(log), method, "3g", "steps" if scale <= 2 else "whole")
        if local["released"] != spark["released"]:
            raise SystemExit(
                f"{method} at {scale}: {local['released']} and {spark['released']} were released"
            )
        row = {"method": method, "records": size, "skewed": skewed, "local": local, "spark": spark}
        found["runs"].append(row)
        alone = sum(local["parts"].values()) - local["parts"]["start"]
        print(
            f"{method} {'skewed ' if skewed else ''}{size:,}: local {alone:.1f} s, {local['peak_mb']:,} MB;"
            f" Spark {spark['whole']:.1f} s, {spark['peak_mb']:,} MB; {spark['whole'] / alone:.1f} times",
            flush=True,
        )
    return found


def stream_log(records: int) -> pl.DataFrame:
    """Return a log in order of time."""
    frame = qc.generate(records // 25, seed=1, categories=True).frame.sort("time").head(records)
    return frame.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))


def stream_worker(method: str, log: pl.DataFrame, batches: int = BATCHES) -> dict[str, float]:
    """Run one of eight partitions; time its steps at the end, when its state is largest."""
    from querycloak.spark.stage_worker import StreamWorker
    from querycloak.spark.state_store import LEAST
    from querycloak.spark.streaming import plan_of
    from querycloak.spark.transfer import pack, put_in_lanes, unpack

    columns = [name for name in log.columns if name != "row"]
    plan = plan_of([method], columns, 8, 1, None, "", STREAM_SETTINGS[method])
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


def streaming(scale: float) -> dict[str, Any]:
    """Run one of eight partitions of a million records in forty micro-batches; no Spark is started."""
    log = stream_log(int(BATCHES * RECORDS * scale))
    return {method: stream_worker(method, log) for method in STREAM_SETTINGS}

"""`km` on a log that is too large for the local form: one memory limit for both forms, and one checker.

python -m benchmarks.spark_km [USERS [LIMIT_GB]]

The limit is on the memory of all processes of a form together, as a container's would be: a watchdog adds
it up (shared pages once) and ends the form when it is passed. The local form is run again without a limit, to
see what it would have needed and whether both releases are equal.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.__main__ import RESULTS, machine

USERS, LIMIT_GB = 100_000, 2.7
KEY = bytes(range(32))
SETTINGS = {"k": 5, "m": 2}
#: What Spark is given: a heap for the driver and its two workers, and entries that a worker may hold.
HEAP, ROOM = "768m", 1 << 20
COLUMNS = ("original_row", "original_user", "released_after", "user", "query", "time")


def stages() -> list[Any]:
    """Give what both forms run."""
    from querycloak.engines.pipeline import Stage
    from querycloak.methods.km import Km

    return [Stage("km", Km.Settings(**SETTINGS))]


def make(folder: Path, users: int) -> None:
    """Make up a log, in files of some 10,000 people each."""
    from querycloak.testing import generator

    rows = 0
    for number, piece in enumerate(generator.pieces(users, 5, piece_users=10_000)):
        frame = piece.frame.drop("row", strict=False).with_row_index("row", offset=rows)
        frame.cast({"row": pl.Int64}).write_parquet(folder / f"part-{number:04}.parquet")
        rows += frame.height
    print(json.dumps({"rows": rows}))


def run_local(log: Path, output: Path) -> None:
    """Protect on one machine, as the local engine does, from pieces on disk."""
    from querycloak.dictionary import Texts
    from querycloak.engines import local
    from querycloak.engines.pipeline import Pipeline
    from querycloak.engines.replay import Spool

    spool = Spool(output.parent, KEY)
    try:
        for file in sorted(log.glob("*.parquet")):
            spool.add(pl.read_parquet(file))
        released = local.run(Pipeline(stages(), KEY, Texts()), spool.pieces(1_000_000))
        parts = [pl.concat([part.frame, part.truth], how="horizontal") for part in released]
        pl.concat(parts).select(COLUMNS).write_parquet(output)
    finally:
        spool.close()


def run_spark(log: Path, output: Path) -> None:
    """Protect on Spark with two workers on this machine."""
    from querycloak.engines.spark import session
    from querycloak.engines.spark.km import protect_km
    from querycloak.keys import stage_key

    options = {
        "spark.driver.memory": HEAP,
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
        "spark.python.factory.idleWorkerMaxPoolSize": "2",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.local.dir": str(output.parent),
        "spark.sql.shuffle.partitions": "16",
        "spark.sql.warehouse.dir": str(output.parent / "warehouse"),
    }
    spark = session.start("local[2]", options)
    (stage,) = stages()
    begin = time.perf_counter()
    done = protect_km(
        spark.read.parquet(str(log)),
        stage.settings,
        stage_key(KEY, 0, "km", stage.settings.as_dict()),
        release_key=KEY,
        room=ROOM,
    )
    done.frame.select(*COLUMNS).write.parquet(str(output))
    seconds = round(time.perf_counter() - begin, 1)
    print(json.dumps({"seconds_without_start": seconds, **done.explanation, "most_often_deleted": None}))
    spark.stop()


def check(release: Path, original: Path) -> None:
    """Have the promise's own audit list and count every combination of the release again."""
    from querycloak.dictionary import Texts
    from querycloak.guarantees import Evidence
    from querycloak.methods.km import Km

    rows = pl.read_parquet(_files(release)).with_row_index("released_row").cast({"released_row": pl.Int64})
    evidence = Evidence(rows.lazy().select("released_row", "user", "query", "time"))
    audit = Km(stages()[0].settings, KEY, Texts()).promise().audits[0]
    print(json.dumps({"audit": audit.check, "faults": audit.run(evidence), "rows_released": rows.height}))


def _files(release: Path) -> list[Path]:
    return sorted(release.glob("*.parquet")) if release.is_dir() else [release]


def equal(one: Path, other: Path) -> bool:
    """Say whether two releases are the same rows with the same truth."""
    frames = [pl.read_parquet(_files(path)).select(COLUMNS).sort("original_row") for path in (one, other)]
    return frames[0].equals(frames[1].cast(dict(frames[0].schema)))


def watched(step: str, *arguments: Path | int, limit_gb: float | None = None) -> dict[str, Any]:
    """Run a step in processes of its own; end it when they take more than the limit together."""
    few_arenas = os.environ | {"MALLOC_ARENA_MAX": "2"}  # memory that is freed is given back, in both forms
    command = [sys.executable, "-m", "benchmarks.spark_km", step, *map(str, arguments)]
    begin, peak = time.perf_counter(), 0.0
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as faults:
        child = subprocess.Popen(command, stdout=told, stderr=faults, start_new_session=True, env=few_arenas)
        ended = False
        while child.poll() is None:
            peak = max(peak, sum(_gigabytes(process) for process in _family(child.pid)))
            if limit_gb is not None and peak > limit_gb and not ended:
                os.killpg(child.pid, signal.SIGKILL)
                ended = True
            time.sleep(0.3)
        told.seek(0), faults.seek(0)
        lines = told.read().decode().splitlines()
        if child.returncode and not ended:
            raise RuntimeError(faults.read().decode()[-2000:])
    said = json.loads(lines[-1]) if lines and not ended else {}
    seconds = round(time.perf_counter() - begin, 1)
    outcome = "ended: over the limit" if ended else "finished"
    return {"outcome": outcome, "seconds": seconds, "peak_gb": round(peak, 2), "limit_gb": limit_gb} | said


def _family(process: int) -> list[int]:
    """Name a process and all that it started: Python's workers of Spark are in sessions of their own."""
    found, waiting = [], [process]
    while waiting:
        found.append(waiting.pop())
        for tasks in Path(f"/proc/{found[-1]}/task").glob("*/children"):
            try:
                waiting += [int(child) for child in tasks.read_text().split()]
            except OSError:
                continue
    return found


def _gigabytes(process: int) -> float:
    """Add up the memory of a process, what it shares by the part of it that is its own."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e9


def measure(users: int, limit_gb: float) -> dict[str, Any]:
    """Run everything; keep the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "log"
        log.mkdir()
        found: dict[str, Any] = {
            "users": users,
            "settings": SETTINGS,
            "spark": {"heap": HEAP, "room": ROOM},
        }
        found["log"] = watched("make", log, users)
        for form in ("local", "spark"):
            found[form + " form"] = watched(form, log, folder / form, limit_gb=limit_gb)
            print(json.dumps({form: found[form + " form"]}), flush=True)
        if found["spark form"]["outcome"] == "finished":
            found["checker on the release of Spark"] = watched("check", folder / "spark", log)
            found["local form without a limit"] = watched("local", log, folder / "unlimited")
            found["releases are equal"] = equal(folder / "unlimited", folder / "spark")
    return found


_STEPS = {"local": run_local, "spark": run_spark, "check": check}

if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] == "make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:] and sys.argv[1] in _STEPS:
        _STEPS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        size, most = (int(sys.argv[1]), float(sys.argv[2])) if len(sys.argv) > 2 else (USERS, LIMIT_GB)
        document = measure(size, most) | {"machine": machine()}
        (RESULTS / "spark-km.json").write_text(json.dumps(document, indent=2) + "\n")
        print(json.dumps(document, indent=2))

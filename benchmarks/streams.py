"""`swap` and `cohort`: kernels, file to file, growth; beside plain Python and `zanon` in the same run.

Kernels, methods and plain Python are timed in seconds of one processor, so that a busy machine does not blur
their ratio; whole runs of the program in seconds of the clock.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import PROGRAM, array_bytes, peak_bytes
from querycloak.dictionary import Dictionaries
from querycloak.engines import codec, local
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.engines.time_order import whole
from querycloak.log import Batch, Log
from querycloak.methods.cohort import kernel as cohort_kernel
from querycloak.methods.swap import kernel as swap_kernel
from querycloak.synthetic import generate

KEY = b"k" * 32
#: The peer gets the first so many records: it slows down as its window fills.
PEER_RECORDS = 40_000
WINDOW, Z = 3600, 3
PIECE = 1 << 17
NAIVE_RECORDS = 300_000
SEARCHES_PER_USER = 32  # of the synthetic log
#: The kernels that each method calls, so that they can be timed where they are called.
KERNELS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "swap": (swap_kernel, ("swap", "swap_with_promotion")),
    "cohort": (cohort_kernel, ("by_arrival", "by_similarity", "release", "draw_labels")),
}
SETTINGS = {
    "swap": [{"k": str(k), "level": str(level)} for level in (1, 6, 13) for k in (3, 10, 100)],
    "cohort": [{"k": str(k)} for k in (3, 10, 100)] + [{"k": "10", "assign": "similar"}],
}


def encoded(log: Log) -> tuple[Batch, Dictionaries]:
    """Return a log as integers; not timed."""
    texts = Dictionaries()
    pipeline = Pipeline(parse_stages(["swap"], {}), KEY, texts)
    return codec.encode_and_register(next(whole(log, KEY)), pipeline, 0), texts


@contextlib.contextmanager
def stopwatch(method: str) -> Iterator[list[float]]:
    """Add up the seconds that a method's kernels take, by standing in for them while it runs."""
    module, names = KERNELS[method]
    spent = [0.0]

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            begin = time.process_time()
            try:
                return call(*arguments)
            finally:
                spent[0] += time.process_time() - begin

        return run

    known = {name: getattr(module, name) for name in names}
    try:
        for name, call in known.items():
            setattr(module, name, timed(call))
        yield spent
    finally:
        for name, call in known.items():
            setattr(module, name, call)


def push_all(
    method: str, settings: dict[str, str], batch: Batch, texts: Dictionaries
) -> tuple[float, float, int]:
    """Stream a batch through a method; return the kernels' seconds, all seconds, and its array bytes."""
    protector = Pipeline(parse_stages([method], settings), KEY, texts).stages[0]
    with stopwatch(method) as spent:
        begin = time.process_time()
        for start in range(0, len(batch), PIECE):
            protector.push(batch[start : start + PIECE])
            protector.drain_dropped()
        return spent[0], time.process_time() - begin, array_bytes(protector, texts)


def naive_rate(batch: Batch, texts: Dictionaries, k: int, level: int) -> float:
    """Return the records per second of Algorithm 1 in plain Python."""
    from tests.reference import naive_swap

    users = batch.user[:NAIVE_RECORDS].tolist()
    categories = texts.category.at_level(batch.category[:NAIVE_RECORDS], level).tolist()
    begin = time.process_time()
    naive_swap.swap(users, categories, k, seed=1)
    return len(users) / (time.process_time() - begin)


def kernels(batch: Batch, texts: Dictionaries) -> dict[str, Any]:
    """Measure records per second on one core, best of three, beside plain Python where it can do the same."""
    found: dict[str, Any] = {}
    for method, chosen in SETTINGS.items():
        for settings in chosen:
            push_all(method, settings, batch[:1000], texts)  # compiles
            runs = [push_all(method, settings, batch, texts) for _ in range(3)]
            name = " ".join([method, *(f"{key}={value}" for key, value in settings.items())])
            line: dict[str, Any] = {
                "kernel_records_per_second": round(len(batch) / min(run[0] for run in runs)),
                "method_records_per_second": round(len(batch) / min(run[1] for run in runs)),
            }
            if method == "swap":
                rate = naive_rate(batch, texts, int(settings["k"]), int(settings["level"]))
                line["plain_python_records_per_second"] = round(rate)
                line["kernel_to_plain_python"] = round(line["kernel_records_per_second"] / rate, 1)
            found[name] = line
    return found


def growth(users: int, times: tuple[int, ...] = (1, 2, 4, 8, 16)) -> dict[str, Any]:
    """Measure nanoseconds per record and array memory on the first 1, 2, 4 … parts of one long log."""
    batch, texts = long_batch(users, times[-1])
    found: dict[str, Any] = {}
    part = len(batch) // times[-1]
    for method, settings in (("swap", {"k": "10", "level": "6"}), ("cohort", {"k": "10"})):
        push_all(method, settings, batch[:1000], texts)
        for factor in times:
            kernel, every, held = push_all(method, settings, batch[: factor * part], texts)
            found[f"{method} {factor}x"] = {
                "records": factor * part,
                "kernel_nanoseconds_per_record": round(1e9 * kernel / (factor * part), 1),
                "method_nanoseconds_per_record": round(1e9 * every / (factor * part), 1),
                "array_megabytes": round(held / 1e6, 1),
            }
    return found


def long_batch(users: int, times: int) -> tuple[Batch, Dictionaries]:
    """Replay one synthetic log several times, as if its users went on searching."""
    batch, texts = encoded(generate(users, seed=7, categories=True))
    size = len(batch)
    columns = {name: np.tile(array, times) for name, array in batch.arrays().items()}
    shift = np.repeat(np.arange(times) * size, size)
    columns["row"], columns["seq"] = np.arange(times * size), np.arange(1, times * size + 1)
    columns["time"] = columns["time"] + shift  # time goes on
    return Batch.of(columns, texts), texts


def file_to_file(log: Log, folder: Path) -> dict[str, Any]:
    """Run `protect` as people do, in a process of its own, on a Parquet file of classified records."""
    source = folder / "log.parquet"
    log.frame.drop("row").write_parquet(source)
    found: dict[str, Any] = {"records": len(log)}
    for method, settings in (
        ("swap", ["k=3", "level=1"]),
        ("swap", ["k=10", "level=6"]),
        ("cohort", ["k=10"]),
    ):
        chosen = [part for setting in settings for part in ("-s", setting)]
        for _ in range(2):  # the first run compiles whatever is not compiled yet
            line = protected(["-m", method, *chosen], source, folder / "out.parquet")
        line["records_per_second"] = round(len(log) / line["seconds_without_audit"])
        found[" ".join([method, *settings])] = line
    return found


def protected(arguments: list[str], source: Path, output: Path) -> dict[str, Any]:
    """Run `protect`; return its own seconds by step, the whole process's, and its peak memory."""
    command = [PROGRAM, "protect", str(source), *arguments, "--seed", "1", "--json", "-o", str(output)]
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(command, stdout=answer)
        peak = peak_bytes(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        whole_run = time.perf_counter() - begin
        if process.returncode:
            raise SystemExit(f"protect ended with status {process.returncode}")
        answer.seek(0)
        seconds = json.loads(answer.read())["seconds"]
    return {
        "seconds": seconds,
        "seconds_without_audit": round(sum(seconds.values()) - seconds.get("audit", 0.0), 3),
        "seconds_of_the_process": round(whole_run, 2),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_gigabytes": round(peak / 1e9, 2),
    }


def z_anonymity_seconds(log: Log, generalise: bool) -> float:
    """Replay, encode, protect and spell out again, once everything is compiled."""
    settings = {"z": str(Z), "window": str(WINDOW), "generalise": "yes" if generalise else "no"}
    stages = parse_stages(["z-anonymity"], settings)
    for part in (log.with_frame(log.frame.head(1000)), log):
        begin = time.perf_counter()
        for _ in local.run(Pipeline(stages, KEY, Dictionaries()), whole(part, KEY)):
            pass
        seconds = time.perf_counter() - begin
    return seconds


def zanon_seconds(log: Log, generalise: bool) -> float:
    """Feed the same records to `zanon`, one by one, as its documentation does."""
    import matplotlib as mpl

    mpl.use("Agg")
    from zanonymity import zanon

    what = (
        pl.concat_str(pl.col("category").str.replace_all("/", "*"), pl.lit("*"), "query")
        if generalise
        else pl.col("query")
    )
    table = log.frame.sort("time", "row").select(pl.col("time").dt.epoch("s"), "user", what.alias("what"))
    records = table.rows()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # the peer writes files
        anonymizer = zanon.zanon(WINDOW, 0.8, 2)
        begin = time.perf_counter()
        for record in records:
            anonymizer.anonymize(record)
        anonymizer.endFiles()
        return time.perf_counter() - begin


def zanon_rate(log: Log, generalise: bool = False) -> float:
    """Return the records per second of `zanon` on the first records of the same log."""
    first = log.with_frame(log.frame.sort("time", "row").head(PEER_RECORDS))
    return len(first) / zanon_seconds(first, generalise)


def measure(scale: float) -> dict[str, Any]:
    """Measure everything; at full scale kernels get 2 M records, files 5 M, growth goes to 16 M."""
    small = generate(int(2_000_000 * scale / SEARCHES_PER_USER) + 200, seed=7, categories=True)
    batch, texts = encoded(small)
    found: dict[str, Any] = {"kernel_records": len(batch), "kernels": kernels(batch, texts)}
    found["growth"] = growth(int(1_000_000 * scale / SEARCHES_PER_USER) + 200)
    log = generate(int(138_000 * scale) + 50, seed=7, categories=True)
    with tempfile.TemporaryDirectory() as folder:
        found["file_to_file"] = file_to_file(log, Path(folder))
    try:
        rate = zanon_rate(log)
    except ImportError:
        return found | {"zanon": "not installed: `make bench` installs it"}
    slowest = min(
        line["records_per_second"] for line in found["file_to_file"].values() if isinstance(line, dict)
    )
    return found | {"zanon_records_per_second": round(rate), "protect_to_zanon": round(slowest / rate, 1)}


def z_anonymity(scale: float) -> dict[str, Any]:
    """Compare records per second, with and without the hierarchy of categories."""
    log = generate(int(12_000 * scale), seed=7, categories=True)
    found: dict[str, Any] = {"records": len(log), "peer_records": min(len(log), PEER_RECORDS)}
    for name, generalise in (("queries", False), ("hierarchy", True)):
        rate = len(log) / z_anonymity_seconds(log, generalise)
        peer_rate = zanon_rate(log, generalise)
        found[name] = {
            "records_per_second": round(rate),
            "zanon_records_per_second": round(peer_rate),
            "ratio": round(rate / peer_rate, 1),
        }
    return found

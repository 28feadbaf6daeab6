"""One candidate from end to end, in a process of its own: protect, audit, attack, measure; then forget."""

from __future__ import annotations

import math
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from querycloak import io
from querycloak.attacks.run import attack
from querycloak.engines.compare.plan import Attacked, Job
from querycloak.engines.compare.samples import sampled
from querycloak.engines.release import Report, protect
from querycloak.engines.request import Request
from querycloak.engines.verify import read_truth
from querycloak.errors import QueryCloakError
from querycloak.guarantees import COUNTS_ONLY
from querycloak.measures.on_logs import NotApplicable, Pair
from querycloak.registry import MEASURES


def run(job: Job, log: Path, folder: Path) -> dict[str, Any]:
    """Run a job; give its numbers, or why there are none. No query and no user is among them."""
    with tempfile.TemporaryDirectory(dir=folder) as private:
        try:
            return _run(job, _people(log, job, Path(private)), Path(private))
        except QueryCloakError as error:
            return {"failed": error.message, "kind": error.code}
        except MemoryError:
            return {"failed": "it needs more memory than there is", "kind": "memory"}


def _people(log: Path, job: Job, folder: Path) -> Path:
    """Give the log, or one with fewer of its people."""
    if job.people is None:
        return log
    frame = pl.read_parquet(log)
    users = frame["user"].unique().sort()
    few = users.sample(min(job.people, users.len()), seed=job.seed)
    path = folder / "log.parquet"
    frame.filter(pl.col("user").is_in(few.implode())).write_parquet(path)
    return path


def _run(job: Job, log: Path, folder: Path) -> dict[str, Any]:
    output, truth = folder / "release.parquet", folder / "truth.parquet"
    started = time.perf_counter()
    report = protect(Request(str(log), str(output), job.candidate.stages(), truth=truth, seed=job.seed))
    spent = {"protect": time.perf_counter() - started}
    released = io.read(str(output), required=()).frame if not report.table else pl.DataFrame()
    original, known = io.read(str(log)).frame, read_truth(truth)
    attacked = original
    if job.candidate.sample and not report.table:
        part = sampled(job.candidate.sample, released, known, original["user"], job.seed)
        released, known, attacked = part.release, part.truth, part.among(original)
        report.released = released.height
    started = time.perf_counter()
    findings: dict[str, Any] = {}
    for some in _rounds(job.attacks):
        settings = {f"{one.name}.{name}": value for one in some for name, value in one.settings.items()}
        names = [one.name for one in some]
        found = attack(released, report.certificate, attacked, known, names, settings, seed=job.seed)
        findings |= {one.label: finding.as_dict() for one, finding in zip(some, found, strict=True)}
    findings = {one.label: findings[one.label] for one in job.attacks}
    spent["attack"] = time.perf_counter() - started
    started = time.perf_counter()
    measures = _measures(job, Pair(original, released, known), report)
    spent["measure"] = time.perf_counter() - started
    return {
        "promises": _promises(report),
        "released": report.released,
        "withheld": report.withheld,
        "rows": report.rows_read,
        "labels": "made up" if job.candidate.sample == "synthetic" else _labels(report, released, known),
        "findings": findings,
        "measures": measures,
        "seconds": {name: round(value, 3) for name, value in spent.items()},
        "audit_seconds": report.seconds.get("audit", 0.0),
        "peak_mb": round(_peak()),
    }


def _rounds(attacks: Sequence[Attacked]) -> list[list[Attacked]]:
    """Put attacks that can run together into one round: each by name once, since a case is worth sharing."""
    rounds: list[list[Attacked]] = []
    for one in attacks:
        free = (some for some in rounds if all(other.name != one.name for other in some))
        if (some := next(free, None)) is None:
            rounds.append([one])
        else:
            some.append(one)
    return rounds


def _promises(report: Report) -> list[dict[str, Any]]:
    """Give what each method promises in words, whether its audit found that kept, and what it leaves out."""
    return [
        {
            "method": one["method"],
            "words": one["promise"],
            "audit": one["audit"],
            "facts": one["facts"],
            "does_not_protect_against": one["does_not_protect_against"],
        }
        for one in report.certificate["methods"]
    ]


def _labels(report: Report, released: pl.DataFrame, truth: pl.DataFrame) -> str:
    """Say what a label of the release stands for: that decides which game is a question at all."""
    if report.table:
        return "table"
    if not released.height:
        return "empty"
    if "user" not in released.columns or released["user"].null_count() == released.height:
        return "none"
    rows = released.select(pl.col("row").cast(pl.Int64), "user")
    real = truth.drop_nulls("original_row").select(
        pl.col("released_row").cast(pl.Int64).alias("row"), author="original_user"
    )
    found = rows.join(real, on="row").drop_nulls().group_by("user").agg(pl.col("author").n_unique())
    if not found.height:
        return "shared"  # every row is made up of several people's
    return "mixed" if (found["author"] > 1).any() else "one person each"


def _measures(job: Job, pair: Pair, report: Report) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in job.measures:
        if report.table:
            found[name] = {"not_applicable": COUNTS_ONLY}
            continue
        try:
            found |= _flat(name, MEASURES.get(name)()(pair))
        except NotApplicable as reason:
            found[name] = {"not_applicable": str(reason)}
    return found


def _flat(name: str, value: Any) -> dict[str, float]:
    """Give the numbers of a measure by name and part: `top_preserved.queries_100`."""
    if isinstance(value, dict):
        parts = [_flat(f"{name}.{part}", inner) for part, inner in value.items()]
        return {key: number for part in parts for key, number in part.items()}
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return {}
    return {name: float(value)}


def _peak() -> float:
    """Give the most memory that this process ever had, in megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)

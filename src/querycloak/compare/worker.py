"""Run one job of a comparison in its own process: protect, audit, attack and measure one candidate."""

from __future__ import annotations

import math
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from querycloak import formats
from querycloak.attacks.run import attack
from querycloak.compare.plan import Job
from querycloak.compare.release_samples import draw_release_sample
from querycloak.compare.result import label_text
from querycloak.engines.release import ReleaseJob, Report, make_release, protect_like
from querycloak.engines.source import read_log
from querycloak.errors import QueryCloakError
from querycloak.formats import ReadOptions
from querycloak.measures import base as measures
from querycloak.measures.base import LogPair
from querycloak.truth import read_truth


def run(job: Job, log: Path, folder: Path) -> dict[str, Any]:
    """Run a job; return its numbers, or why there are none. They hold no query and no user."""
    with tempfile.TemporaryDirectory(dir=folder) as private:
        try:
            return _run(job, log, Path(private))
        except QueryCloakError as error:
            return {"failed": error.message, "kind": error.code}
        except MemoryError:
            return {"failed": "it needs more memory than there is", "kind": "memory"}


def _run(job: Job, log: Path, folder: Path) -> dict[str, Any]:
    output, truth = folder / "release.parquet", folder / "truth.parquet"
    started = time.perf_counter()
    stages = job.candidate.stages()
    made = ReleaseJob(str(log), str(output), stages, truth=truth, seed=job.seed, evaluation=True)
    report = make_release(made).report
    spent = {"protect": time.perf_counter() - started}
    released = formats.read(str(output), required=()).frame if not report.table else pl.DataFrame()
    original, known = read_log(str(log), ReadOptions()).frame, read_truth(truth)
    attacked = original
    if job.candidate.sample and not report.table:
        part = draw_release_sample(job.candidate.sample, released, known, original["user"], job.seed)
        released, known, attacked = part.release, part.truth, part.known_users(original)
        report.released = released.height
    started = time.perf_counter()
    attacks = [one.attack(job.seed) for one in job.attacks]
    protect = protect_like(report.certificate)
    found = attack(released, report.certificate, attacked, known, attacks, protect=protect)
    findings = {
        one.label: each.as_dict() | {"knowledge": each.knowledge.value, "labels": each.labels.value}
        for one, each in zip(job.attacks, found, strict=True)
    }
    spent["attack"] = time.perf_counter() - started
    started = time.perf_counter()
    measures = _measures(job, LogPair(original, released, known), report)
    spent["measure"] = time.perf_counter() - started
    return {
        "promises": _promises(report),
        "labels": _labels(job, report),
        "findings": findings,
        "measures": measures,
        "seconds": {name: round(value, 3) for name, value in spent.items()},
        "peak_mb": round(_peak()),
    }


def _promises(report: Report) -> list[dict[str, Any]]:
    """Return each method's promise, the verdict of its audit, and what it does not cover."""
    fields = ("method", "audit", "facts", "does_not_protect_against")
    return [
        {"words": one["promise"], **{name: one[name] for name in fields}}
        for one in report.certificate["methods"]
    ]


def _labels(job: Job, report: Report) -> str:
    """Return what a label of the release stands for, which decides which games apply."""
    if job.candidate.sample == "synthetic":
        return "made up"
    return label_text(report.certificate) if report.released or report.table else "empty"


def _measures(job: Job, pair: LogPair, report: Report) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in measures.run(pair, job.measures, table=report.table).items():
        without = isinstance(value, dict) and "not_applicable" in value
        found |= {name: value} if without else _flat(name, value)
    return found


def _flat(name: str, value: Any) -> dict[str, float]:
    """Return the numbers of a measure by name and part: `top_preserved.queries_100`."""
    if isinstance(value, dict):
        parts = [_flat(f"{name}.{part}", inner) for part, inner in value.items()]
        return {key: number for part in parts for key, number in part.items()}
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return {}
    return {name: float(value)}


def _peak() -> float:
    """Return the peak memory of this process in megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)

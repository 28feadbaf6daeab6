"""Run a comparison in a folder: sample the log, run the jobs of the plan, combine their results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from querycloak import temporary_files
from querycloak._version import __version__
from querycloak.compare.plan import Job, Plan
from querycloak.compare.pool import WorkerPool
from querycloak.compare.result import Comparison, VariedSetting, combine_runs
from querycloak.compare.sampling import LogSample, draw_sample
from querycloak.compare.spec import AttackSpec, Candidate
from querycloak.engines.source import Progress, silent
from querycloak.errors import Busy
from querycloak.files import FolderLock
from querycloak.formats import ReadOptions
from querycloak.log import Log
from querycloak.registry import ATTACKS, MEASURES, METHODS


def compare(
    log: str | Log,
    plan: Plan,
    folder: Path,
    *,
    reading: ReadOptions | None = None,
    progress: Progress = silent,
    report: Callable[[int, int, float], None] = lambda done, total, seconds: None,
) -> Comparison:
    """Run a plan and return its results; results of an earlier start in the same folder are used again.

    `folder/private` is readable by its owner only and holds the results, which stay for a wider plan. The
    sampled log and the releases are in a temporary folder. `report` gets the jobs done, all jobs, and the
    estimated seconds left.
    """
    work = folder / "private"
    results = work / "results"
    folder.mkdir(parents=True, exist_ok=True)
    work.mkdir(mode=0o700, exist_ok=True)
    results.mkdir(mode=0o700, exist_ok=True)
    with _lock(work), temporary_files.new_folder() as temporary:
        target = temporary.path / "log.parquet"
        about = draw_sample(
            log, target, sample=plan.sample, seed=plan.seed, progress=progress, reading=reading
        )
        pool = WorkerPool(target, about.fingerprint, results, temporary.path, seconds=plan.seconds)
        jobs = plan.jobs()
        found = pool.run(jobs, report)
    return _comparison(plan, about, jobs, [found[pool.key(job)] for job in jobs])


def _lock(folder: Path) -> FolderLock:
    """Return the lock of a folder; raise Busy if another process holds it."""
    try:
        return FolderLock(folder / "lock")
    except BlockingIOError:
        raise Busy("another comparison runs in this folder", hint="wait for it, or name another") from None


def _comparison(plan: Plan, about: LogSample, jobs: list[Job], found: list[dict[str, Any]]) -> Comparison:
    attacks = [_describe_attack(one) for one in plan.attacks]
    used = {method for one in plan.candidates for method in one.methods}
    results = [
        combine_runs(
            _describe(one), [run for job, run in zip(jobs, found, strict=True) if job.candidate == one]
        )
        for one in plan.candidates
    ]
    return Comparison(
        log=about,
        candidates=results,
        attacks=attacks,
        measures=[{"name": name, "help": MEASURES.get(name).help} for name in plan.measures],
        methods={name: _first_line(METHODS.get(name)) for name in METHODS.names() if name in used},
        not_run=[
            {"method": name, "why": "it was not asked for"} for name in METHODS.names() if name not in used
        ],
        version=__version__,
        seed=plan.seed,
        seeds=sorted({job.seed for job in jobs}),
        repeats=plan.repeats,
        preset=plan.preset,
        arguments=list(plan.arguments),
    )


def _first_line(method: type) -> str:
    return (method.__doc__ or "").strip().partition("\n")[0]


def _describe_attack(one: AttackSpec) -> dict[str, Any]:
    kind = ATTACKS.get(one.name)
    return {
        "name": one.name,
        "label": one.label,
        "game": kind.game,
        "sees": kind.sees(),
        "summary": " ".join((kind.__doc__ or "").strip().partition("\n\n")[0].split()),
    }


def _describe(one: Candidate) -> dict[str, Any]:
    """Return what is known of a candidate before it runs, as fields of its result."""
    varied = None if one.varied_setting is None else VariedSetting(one.varied_setting, one.varied_value())
    return {
        "name": one.name,
        "series": one.series,
        "methods": list(one.methods),
        "settings": one.full_settings(),
        "varied": varied,
    }

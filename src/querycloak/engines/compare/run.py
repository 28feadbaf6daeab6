"""Runs a comparison in a folder: prepares the log, works the plan off, puts the numbers together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from querycloak._version import __version__
from querycloak.engines.compare.asked import Candidate
from querycloak.engines.compare.crew import Crew
from querycloak.engines.compare.plan import Job, Plan
from querycloak.engines.compare.prepare import Prepared, prepare
from querycloak.engines.request import Progress, silent
from querycloak.errors import Busy
from querycloak.log import Log
from querycloak.registry import ATTACKS, MEASURES, METHODS
from querycloak.report.comparison.result import FORMAT, Comparison, candidate

Results = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Reading:
    """How the log is to be read."""

    format: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False


def compare(
    log: str | Log,
    plan: Plan,
    folder: Path,
    *,
    reading: Reading | None = None,
    halves: bool = True,
    progress: Progress = silent,
    told: Callable[[int, int, float], None] = lambda done, total, seconds: None,
) -> Comparison:
    """Run a plan; what an earlier start in the same folder has done is not done again.

    `folder/private` holds the log that candidates get and their results, for the owner's eyes only. The log
    goes when all is done; results stay, so that a wider plan can use them. `halves` says whether to also look
    what half of a sample's people gives.
    """
    work = folder / "private"
    results = work / "results"
    folder.mkdir(parents=True, exist_ok=True)
    work.mkdir(mode=0o700, exist_ok=True)
    results.mkdir(mode=0o700, exist_ok=True)
    with _alone(work):
        shown = reading or Reading()
        target = work / "log.parquet"
        about = prepare(
            log, target, sample=plan.sample, seed=plan.seed, progress=progress,
            format=shown.format, mapping=shown.mapping, strict=shown.strict,
        )  # fmt: skip
        crew = Crew(target, about.fingerprint, results, work, seconds=plan.seconds)
        jobs, small = plan.jobs(), plan.halves() if halves and about.sampled else []
        found = crew.run([*jobs, *small], told)
        target.unlink()
    return Comparison(_document(plan, about, crew, found, jobs, small))


def _document(
    plan: Plan, about: Prepared, crew: Crew, found: Results, jobs: list[Job], halves: list[Job]
) -> dict[str, Any]:
    attacks = [_attack(one.name, one.label) for one in plan.attacks]
    results = {
        one.key(): [found[crew.key(job)] for job in jobs if job.candidate == one] for one in plan.candidates
    }
    told = [candidate(_about(one), results[one.key()], attacks) for one in plan.candidates]
    used = {method for one in plan.candidates for method in one.methods}
    small = [candidate(_about(job.candidate), [found[crew.key(job)]], attacks) for job in halves]
    return {
        "format": FORMAT,
        "version": __version__,
        "preset": plan.preset,
        "asked": list(plan.asked),
        "seed": plan.seed,
        "seeds": sorted({job.seed for job in jobs}),
        "repeats": plan.repeats,
        "log": {name: value for name, value in about.as_dict().items() if name != "fingerprint"},
        "attacks": attacks,
        "measures": [{"name": name, "help": MEASURES.get(name).help} for name in plan.measures],
        "methods": {name: _first_line(METHODS.get(name)) for name in METHODS.names() if name in used},
        "candidates": told,
        "half_the_people": [_short(one) for one in small],
        "not_run": [
            {"method": name, "why": "it was not asked for"} for name in METHODS.names() if name not in used
        ],
    }


def _first_line(method: type) -> str:
    return (method.__doc__ or "").strip().partition("\n")[0]


def _short(one: dict[str, Any]) -> dict[str, Any]:
    """Keep of a run on fewer people what is compared."""
    names = ("name", "failed", "linked", "findings", "measures")
    return {name: one[name] for name in names if name in one}


def _attack(name: str, label: str) -> dict[str, Any]:
    kind = ATTACKS.get(name)
    return {
        "name": name,
        "label": label,
        "game": kind.game,
        "sees": ["release", *sorted(kind.knows)],
        "summary": " ".join((kind.__doc__ or "").strip().partition("\n\n")[0].split()),
    }


def _about(one: Candidate) -> dict[str, Any]:
    return {
        "name": one.name,
        "line": one.line,
        "methods": list(one.methods),
        "settings": one.full_settings(),
        "along": None if one.along is None else {"setting": one.along, "value": one.value()},
    }


class _alone:  # noqa: N801 - used like a function
    """Holds a folder's lock, so that two comparisons do not write into each other's results."""

    def __init__(self, work: Path) -> None:
        self._path = work / "lock"

    def __enter__(self) -> None:
        import fcntl

        self._file = self._path.open("w")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise Busy(
                "another comparison runs in this folder", hint="wait for it, or name another"
            ) from None

    def __exit__(self, *ended: object) -> None:
        self._file.close()

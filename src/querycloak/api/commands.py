"""What the command line calls beside the public verbs: files in and out, clients, the service, the demo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from querycloak.engines.source import LogInput, Progress, silent
from querycloak.formats import ReadOptions
from querycloak.log import Log


def generate_file(users: int, output: str, **options: Any) -> dict[str, Any]:
    """Write a synthetic log to a file, piece by piece; return how many records it has."""
    from querycloak.synthetic.generator import write_log

    return write_log(users, output, **options)


def classify_file(log: str, output: str, **options: Any) -> dict[str, Any]:
    """Write a log with a category and a confidence for every record; return the shares answered."""
    from querycloak.engines import classify as classifying

    return classifying.classify_file(log, output, **options)


def run_demo(output: Path, users: int, *, progress: Progress = silent) -> dict[str, Any]:
    """Run all steps on a synthetic log and write a report."""
    from querycloak.demo import run

    return run(output, users, progress)


def compare_files(
    log: LogInput,
    output: Path,
    *,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    strict: bool = False,
    **options: Any,
) -> Any:
    """Compare methods on a log and write the report into a folder."""
    from querycloak.report.comparison import files

    reading = ReadOptions(format, mapping or {}, strict=strict)
    return files.compare_files(log if isinstance(log, Log) else str(log), output, reading=reading, **options)


@dataclass(frozen=True)
class Recommendation:
    """The release that `recommend` proposes, in numbers and in words; `folder` has the evidence."""

    proposal: dict[str, Any]
    lines: list[str]
    chosen: bool
    folder: Path | None


def recommend_release(
    log: LogInput,
    *,
    max_linkage: float,
    keep: str = "topics",
    attacker: str = "any",
    output: Path | None = None,
    sample: int = 3_000,
    seed: int = 1,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    strict: bool = False,
    progress: Progress = silent,
) -> Recommendation:
    """Search methods and settings on a sample; return the release that keeps most within a limit."""
    from querycloak.compare.recommend import Goal, recommend
    from querycloak.report.comparison.answers import proposal
    from querycloak.report.comparison.files import NO_PAGE, write_proposal

    found = recommend(
        log if isinstance(log, Log) else str(log),
        Goal(max_linkage, keep, attacker),
        folder=output,
        sample=sample,
        seed=seed,
        reading=ReadOptions(format, mapping or {}, strict=strict),
        progress=progress,
    )
    lines = list(proposal(found.as_dict()))
    if output is not None and (missing := write_proposal(found, output)):
        lines.append(f"warning: {NO_PAGE}: {missing}")
    return Recommendation(found.as_dict(), lines, bool(found.chosen), output)


def assess_release(release: Path, output: Path, **evidence: Any) -> dict[str, Any]:
    """Write a page in the style of an impact assessment; return its risks."""
    from querycloak.report.assessment import assess_files

    return assess_files(release, output, **evidence)


def diff_certificates(first: Path, second: Path, **evidence: Any) -> Any:
    """Compare two certificates: what became weaker, stronger, or cannot be ranked."""
    from querycloak.report.certificate_diff import diff_files

    return diff_files(first, second, **evidence)


def obfuscate(
    log: str,
    output: str,
    *,
    method: str,
    settings: Mapping[str, Any] | None = None,
    progress: Progress = silent,
    **options: Any,
) -> dict[str, Any]:
    """Hide the searches of a log among dummy queries; write the traces to a file."""
    from querycloak.clients.obfuscation.run import Cover, cover

    request = Cover(log=log, output=output, method=method, settings=settings or {}, **options)
    return cover(request, progress)


def obfuscate_live(
    output: str,
    *,
    method: str,
    settings: Mapping[str, Any] | None = None,
    every: float | None = None,
    speed: float | None = None,
    seed: int | None = None,
) -> dict[str, int]:
    """Read real queries from standard input and write them among dummy queries."""
    from querycloak.clients.obfuscation.live import run

    return run(method, settings or {}, {"every": every, "speed": speed}, output, seed)


def simulate_crowd(
    *,
    cut: tuple[float, float],
    seed: int | None,
    truth: str | None = None,
    progress: Progress = silent,
    **options: Any,
) -> dict[str, Any]:
    """Simulate friends who submit each other's queries."""
    import secrets

    from querycloak.clients.crowd import study
    from querycloak.clients.crowd.simulator import Behaviour

    names = ("selfish", "colluding", "churn", "penalty", "copies", "renew", "back")
    behaviour = Behaviour(
        least_cut=cut[0], most_cut=cut[1], **{name: options.pop(name) for name in names if name in options}
    )
    chosen = study.Study(
        behaviour=behaviour,
        seed=secrets.randbits(32) if seed is None else seed % 2**63,
        truth=Path(truth) if truth else None,
        **options,
    )
    return study.run(chosen, progress)


def serve(ready: Callable[[str], None], **given: Any) -> None:
    """Run the live service until it is stopped; `ready` is called with its address."""
    from querycloak import service

    service.serve(_service_setup(**given), ready)


def new_service_token(name_and_role: str, **given: Any) -> str:
    """Create a token for `NAME:ROLE` and store its hash; return it once."""
    from querycloak import service

    return service.new_token(_service_setup(**given), name_and_role)


def _service_setup(
    *,
    options: Mapping[str, Any],
    methods: Sequence[str],
    settings: Mapping[str, str],
    seed: int | None,
    config: Path | None,
) -> Any:
    from querycloak.service.settings import setup

    return setup(dict(options), list(methods), dict(settings), seed=seed, config=config)

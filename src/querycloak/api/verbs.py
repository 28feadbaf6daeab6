"""The Python verbs, in step with the command line: read, generate, classify, protect, attack, measure …"""

from __future__ import annotations

import io as std_io
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from querycloak import certificate as certificates
from querycloak import formats
from querycloak.attacks.finding import Finding, Findings
from querycloak.compare.result import Comparison
from querycloak.engines.pipeline import parse_stages
from querycloak.engines.release import Release, ReleaseJob, Report, make_release, protect_like
from querycloak.engines.source import LogInput, Progress, read_log, silent
from querycloak.engines.verify import verify
from querycloak.errors import DataError, UsageError
from querycloak.files import check_outputs
from querycloak.formats import ReadOptions, read, write
from querycloak.keys import write_private
from querycloak.log import COUNTS, Log
from querycloak.measures.base import LogPair
from querycloak.measures.base import run as run_measures
from querycloak.registry import ATTACKS, MEASURES, METHODS
from querycloak.truth import read_truth

if TYPE_CHECKING:
    from querycloak.report.comparison.files import ComparisonReport

#: Made-up people with whom a person's own history is compared.
CROWD = 300

__all__ = [
    "Finding",
    "Release",
    "Report",
    "attack",
    "classify",
    "compare",
    "generate",
    "measure",
    "protect",
    "read",
    "recommend",
    "verify",
    "write",
]


def generate(users: int, seed: int = 0, **options: Any) -> Log:
    """Make up a log that behaves like AOL's of 2006; no real person's search is in it."""
    from querycloak.synthetic import generate as make

    return make(users, seed, **options)


def classify(log: Log, classifier: str = "lexical", taxonomy: str | None = None, **options: Any) -> Log:
    """Return for each record a category, a path from general to specific, and a confidence."""
    from querycloak import text

    tree = text.load_taxonomy(taxonomy) if taxonomy else None
    frame = text.classify_log(log.frame, classifier=classifier, taxonomy=tree, **options)
    return log.with_frame(frame)


def protect(
    log: LogInput,
    *methods: str,
    output: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    truth: str | Path | Literal[False] | None = None,
    state: str | Path | None = None,
    source: str | None = None,
    seed: int | None = None,
    secret_file: str | Path | None = None,
    sign: str | Path | None = None,
    keep: Sequence[str] = (),
    marketing: str | Path | None = None,
    dry_run: bool = False,
    allow_bad: bool = False,
    engine: Literal["local", "spark"] = "local",
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    strict: bool = False,
    piece_rows: int | None = None,
    progress: Progress = silent,
    **more: Any,
) -> Release:
    """Run methods one after the other on a log; return the audited release with its certificate.

    `log` is a path, a `Log` or a polars frame. Row numbers of a `Log` are kept: the ground truth refers to
    them. Settings go by name (`k=5`), or in `settings` (`{"cohort.k": 5}`) where two methods have the same
    one. Without `output` the release stays in memory. `truth` is a file for the ground truth; without one it
    stays in memory, and `False` does not keep it. A log without a usable row, or with more than half of its
    rows bad, is refused unless `allow_bad` accepts it.
    """
    chosen = {**(settings or {}), **more}
    if marketing is not None:
        chosen["marketing"] = marketing
    job = ReleaseJob(
        log=log,
        output=None if output is None else str(output),
        stages=parse_stages(list(methods), chosen),
        truth=Path(truth) if truth else None,
        keep_truth=truth is None,
        state=Path(state) if state else None,
        source=source,
        seed=seed,
        secret_file=Path(secret_file) if secret_file else None,
        sign=Path(sign) if sign else None,
        dry_run=dry_run,
        reading=ReadOptions(
            format, mapping or {}, tuple(keep), strict, least_usable=None if allow_bad else 0.5
        ),
        piece_rows=piece_rows,
        progress=progress,
    )
    if engine == "local":
        return make_release(job)
    from querycloak.spark import SparkEngine

    return make_release(job, SparkEngine(master, conf))


def attack(
    release: Release | str | Path,
    original: LogInput,
    *attacks: str,
    truth: str | Path | None = None,
    certificate: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    write_log: str | Path | None = None,
    write_profiles: str | Path | None = None,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    strict: bool = False,
    progress: Progress = silent,
    **more: Any,
) -> Findings:
    """Attack a release with the named attacks, or all fast ones, and score them against the ground truth.

    `release` is what `protect` returned, or a file with its certificate beside it; a file needs `truth`.
    Settings go by name (`k=5`), or in `settings` (`{"link-repeat.k": 5}`) if two attacks have the same one.
    `write_log` takes the log that the one named attribution rebuilt, `write_profiles` a table of its guessed
    users, categories and counts; both are mode 0600.
    """
    from querycloak.attacks import run

    wanted = write_log is not None or write_profiles is not None
    if wanted and (len(attacks) != 1 or ATTACKS.get(attacks[0]).game not in ("attribution", "control")):
        raise UsageError(  # linkage and identification rebuild none
            "what an attack rebuilt is written for exactly one attribution attack", hint="name one with `-a`"
        )
    check_outputs([write_log, write_profiles], [release, original, truth, certificate, *_beside(release)])
    prepared = run.prepare(
        attacks, {**(settings or {}), **more}, seed
    )  # before long reading, in case a name is wrong
    requests = run.all_requests(prepared)
    if isinstance(release, Release):
        released, document, known = release.log, release.certificate, release.truth
    else:
        beside = Path(certificate) if certificate else certificates.path_of(Path(release))
        needed = beside.is_file() or any(one.certified for one in prepared)
        document = certificates.read(beside) if needed else {}
        extra = frozenset[str]().union(*(one.trace_columns for one in prepared))
        if needed:
            layout = formats.Layout.from_dict(document["release"]["layout"])
            released = formats.read(str(release), layout=layout, required=())
        else:
            released = _read_trace(str(release), extra)
        if truth is None:
            raise UsageError("a release file is attacked with its ground truth", hint="name it as `truth`")
        known = read_truth(Path(truth))
    options = ReadOptions(format, mapping or {}, strict=strict)
    before = read_log(original, options).frame
    asked = {"row", "user", "query", "category"}.union(*(one.original_columns for one in requests))
    before = before.select(name for name in before.columns if name in asked)

    def rebuilt(name: str, frame: pl.DataFrame) -> None:
        if write_log is not None:
            like = formats.Layout.from_dict(document["release"]["layout"]) if document else None
            formats.write(frame, write_log, formats.Layout.for_output(write_log, like=like), private=True)
        if write_profiles is not None:
            write_private(Path(write_profiles), _profiles(frame, Path(write_profiles).suffix))

    return run.attack(
        released.frame, document, before, known, prepared, progress=progress,
        rebuilt=rebuilt if wanted else None, protect=protect_like(document),
    )  # fmt: skip


def _beside(release: object) -> list[Path]:
    return [certificates.path_of(Path(release))] if isinstance(release, str | Path) else []


def _profiles(records: pl.DataFrame, suffix: str) -> bytes:
    """Return the counts of each user by category as Parquet, or else as CSV."""
    if "category" not in records.columns:
        raise UsageError("the release has no categories, so there are no profiles", hint="leave them out")
    counted = records.drop_nulls(["user", "category"]).group_by("user", "category").len("count")
    table, buffer = counted.sort("user", "category").cast({"count": pl.Int64}), std_io.BytesIO()
    if suffix == ".parquet":
        table.write_parquet(buffer)
    else:
        table.write_csv(buffer)
    return buffer.getvalue()


def _read_trace(path: str, extra: frozenset[str]) -> Log:
    """Read a log that has no certificate, with the columns that attacks ask for, if it has them."""
    try:
        return formats.read(path, required=(), keep=sorted(extra))
    except DataError:
        return formats.read(path, required=())


def measure(
    original: LogInput,
    released: LogInput | Release,
    names: Sequence[str] = (),
    *,
    truth: pl.DataFrame | str | Path | None = None,
    marketing: Mapping[str, Mapping[str, float]] | str | Path | None = None,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    strict: bool = False,
) -> dict[str, Any]:
    """Measure what a release keeps of the original; a measure that does not apply states why.

    What `protect` returned has its ground truth, which names the users of fresh labels.
    """
    after = released.log if isinstance(released, Release) else _as_release(released)
    known = read_truth(Path(truth)) if isinstance(truth, str | Path) else truth
    if known is None and isinstance(released, Release) and released.has_truth:
        known = released.truth
    worth = read_marketing(marketing) if isinstance(marketing, str | Path) else marketing
    before = read_log(original, ReadOptions(format, mapping or {}, strict=strict))
    return run_measures(LogPair(before.frame, after.frame, known, worth), names, table=after.table)


def _as_release(released: LogInput) -> Log:
    """Read a release; whether it is a table, its certificate states or else its columns show."""
    if isinstance(released, Log):
        return released
    shown = formats.read(released, required=())
    if not isinstance(released, str | Path):
        return shown
    beside = certificates.path_of(Path(released))
    if beside.is_file():
        return replace(shown, table=bool(certificates.read(beside)["release"].get("table")))
    return replace(shown, table="count" in shown.layout.columns and set(shown.layout.columns) <= set(COUNTS))


def compare(
    log: Log | str | Path,
    *methods: str,
    preset: str | None = None,
    output: str | Path | None = None,
    attacks: Sequence[str] = (),
    measures: Sequence[str] = (),
    sample: int | None = None,
    repeats: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Protect a log in many ways, attack each release, and measure what is kept.

    Methods go as on the command line: `"cohort:k=5,10,20"`, `"rules+cohort:cohort.k=10"`. With `output` the
    report is written there, and a call that was stopped carries on.
    """
    from querycloak.compare.plan import make_plan
    from querycloak.compare.run import compare
    from querycloak.report.comparison.files import NO_PAGE

    asked: dict[str, Any] = {"methods": methods, "preset": preset, "attacks": attacks, "measures": measures}
    asked |= {"sample": sample, "repeats": repeats, "seconds": seconds, "seed": seed}
    if output is None:
        with tempfile.TemporaryDirectory() as folder:
            return compare(_log_or_path(log), make_plan(**asked), Path(folder), progress=progress)
    written = compare_files(log, Path(output), progress=progress, **asked)
    if written.missing:
        warnings.warn(f"{NO_PAGE}: {written.missing}", stacklevel=2)
    return written.comparison


def compare_files(
    log: Log | str | Path, output: Path, *, reading: Mapping[str, Any] | None = None, **options: Any
) -> ComparisonReport:
    """Compare methods on a log and write the report into a folder."""
    from querycloak.report.comparison import files

    return files.compare_files(_log_or_path(log), output, reading=ReadOptions(**(reading or {})), **options)


def _log_or_path(log: object) -> Log | str:
    if isinstance(log, Log):
        return log
    formats.check_type(log)
    return formats.read(log) if isinstance(log, bytes) else str(log)


def recommend(
    log: Log | str | Path,
    *,
    max_linkage: float,
    keep: str = "topics",
    attacker: str = "any",
    sample: int = 3_000,
    seed: int = 1,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Search methods and settings on a sample, and propose the release that keeps most within a limit."""
    goal: dict[str, Any] = {"max_linkage": max_linkage, "keep": keep, "attacker": attacker}
    return recommend_release(log, **goal, sample=sample, seed=seed, progress=progress).proposal


@dataclass(frozen=True)
class Recommendation:
    """The release that `recommend` proposes, in numbers and in words."""

    proposal: dict[str, Any]
    lines: list[str]
    chosen: bool


def recommend_release(
    log: Log | str | Path,
    *,
    max_linkage: float,
    keep: str = "topics",
    attacker: str = "any",
    output: Path | None = None,
    reading: Mapping[str, Any] | None = None,
    **options: Any,
) -> Recommendation:
    """Search as `recommend` does; the evidence goes to the folder `output`."""
    from querycloak.compare.recommend import Goal, recommend
    from querycloak.report.comparison.answers import proposal
    from querycloak.report.comparison.files import NO_PAGE, check_report, write_proposal

    if output is not None:
        check_report(output, [log])
    options |= {"folder": output, "reading": ReadOptions(**(reading or {}))}
    found = recommend(_log_or_path(log), Goal(max_linkage, keep, attacker), **options)
    lines = list(proposal(found.as_dict()))
    if output is not None and (missing := write_proposal(found, output)):
        lines.append(f"warning: {NO_PAGE}: {missing}")
    return Recommendation(found.as_dict(), lines, bool(found.chosen))


def read_marketing(path: str | Path) -> dict[str, dict[str, float]]:
    """Read a CSV of `term, bid, impressions, clicks`."""
    try:
        table = pl.read_csv(path, infer_schema_length=None)
        rows = table.select("term", "bid", "impressions", "clicks").iter_rows(named=True)
        return {str(row.pop("term")): row for row in rows}
    except (OSError, pl.exceptions.PolarsError):
        raise UsageError(
            "the marketing file cannot be read",
            hint="it is a CSV with the columns term, bid, impressions, clicks",
        ) from None


def own_history(
    history: str | Path, *, show: bool = False, output: Path | None = None, **reading: Any
) -> tuple[dict[str, Any], str]:
    """Return what one person's searches tell about their owner: as plain values, and in words.

    Queries themselves are given only with `show`. `output` takes a page, .html or .md, of mode 0600.
    """
    from querycloak.engines.own_history import look, read_history
    from querycloak.report import render
    from querycloak.report.own_history import page

    if output is not None:
        render.check_target(output)
        check_outputs([output], [history])
    found = look(read_history(history, **reading), generate(CROWD).frame, show=show)
    text = page(found)
    if output is not None:
        render.write(text, output, private=True)
    return found, render.terminal(text)


def describe_methods() -> list[dict[str, Any]]:
    """Describe every method: what it does, promises, does not protect against, and its settings."""
    return [
        {
            "name": name,
            "summary": method.__doc__.strip().splitlines()[0],
            "promise": _first_paragraph(method.__doc__.partition("Guarantee:")[2]),
            "does_not_protect_against": list(method.promise(method.Settings()).does_not_protect_against),
            "settings": method.Settings.declarations(),
        }
        for name, method in METHODS.items()
    ]


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def describe_attacks() -> list[dict[str, Any]]:
    """Describe every attack: what it does, its game, what it sees, and its settings."""
    return [
        {
            "name": name,
            "summary": _first_paragraph((kind.__doc__ or "").strip()),
            "game": kind.game,
            "sees": kind.sees(),
            "needs": sorted(kind.columns),
            "fast": kind.fast,
            "settings": kind.Settings.declarations(),
        }
        for name, kind in ATTACKS.items()
    ]


def describe_measures() -> list[dict[str, Any]]:
    """Describe every measure."""
    return [{"name": name, "help": measure.help} for name, measure in MEASURES.items()]

"""The Python verbs, in step with the command line: read, generate, classify, protect, attack, measure …"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from querycloak import certificate as certificates
from querycloak import io
from querycloak.attacks.finding import Findings
from querycloak.dictionary import Texts
from querycloak.engines import release as releasing
from querycloak.engines.pipeline import parse_stages
from querycloak.engines.request import Request, silent
from querycloak.engines.verify import Question, Verification, read_truth
from querycloak.engines.verify import verify as verify_question
from querycloak.errors import DataError, UsageError
from querycloak.guarantees import COUNTS_ONLY
from querycloak.io import read, write
from querycloak.keys import write_private
from querycloak.log import COUNTS, Log
from querycloak.measures.on_logs import NotApplicable, Pair
from querycloak.protector import Protector
from querycloak.registry import ATTACKS, MEASURES, METHODS
from querycloak.report.comparison import Comparison
from querycloak.shown import table

#: Made-up people with whom a person's own history is compared.
CROWD = 300

__all__ = [
    "Release",
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


@dataclass(frozen=True)
class Release:
    """A protected log, its certificate, and the private truth about where each row came from."""

    log: Log
    certificate: dict[str, Any] = field(repr=False)
    truth: pl.DataFrame = field(repr=False)
    report: releasing.Report = field(repr=False)

    def _repr_html_(self) -> str:
        rows = [
            (one["method"], one["promise"], one["audit"], "; ".join(one["does_not_protect_against"]))
            for one in self.certificate["methods"]
        ]
        said = f"{self.report.released:,} of {self.report.rows_read:,} records released"
        return table(("method", "promise", "audit", "does not protect against"), rows, said)


def generate(users: int, seed: int = 0, **options: Any) -> Log:
    """Make up a log that behaves like AOL's of 2006; no real person's search is in it."""
    from querycloak.testing.generator import generate as make

    return make(users, seed, **options)


def classify(log: Log, classifier: str = "lexical", taxonomy: str | None = None, **options: Any) -> Log:
    """Give each record a category, a path from general to specific, and a confidence."""
    from querycloak import topics

    tree = topics.load_taxonomy(taxonomy) if taxonomy else None
    frame = topics.classify_log(log.frame, classifier=classifier, taxonomy=tree, **options)
    return log.with_frame(frame)


def protect(
    log: Log | str | Path,
    *methods: str,
    output: str | Path | None = None,
    seed: int | None = None,
    secret_file: str | Path | None = None,
    truth: str | Path | None = None,
    state: str | Path | None = None,
    source: str | None = None,
    keep: Sequence[str] = (),
    piece_rows: int | None = None,
    progress: Callable[[str, int, int | None], None] = silent,
    **settings: Any,
) -> Release:
    """Run methods one after the other on a log; give the release, audited, with its certificate.

    Settings go by name (`k=5`); where two stages have the same one, pass `{"method.name": value}` as
    `**`. Nothing is written unless `output` is given.
    """
    chosen = {name: _text(value) for name, value in settings.items()}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(output) if output is not None else Path(folder, "release.parquet")
        request = Request(
            log=_as_file(log, Path(folder)),
            output=str(target),
            stages=parse_stages(list(methods), chosen),
            truth=Path(truth) if truth else Path(folder, "truth.parquet"),
            state=Path(state) if state else None,
            source=source,
            seed=seed,
            secret_file=Path(secret_file) if secret_file else None,
            keep=tuple(keep),
            piece_rows=piece_rows,
            progress=progress,
        )
        report = releasing.protect(request)
        released = _read_released(target, report, tuple(keep))
        assert request.truth is not None
        return Release(released, report.certificate, read_truth(request.truth), report)


def _read_released(path: Path, report: releasing.Report, keep: tuple[str, ...]) -> Log:
    """Read a release; of a table, also its counts."""
    if not report.table:
        return io.read(str(path), required=(), keep=keep)
    layout = io.Layout.from_dict(report.certificate["release"]["layout"])
    found = io.read(str(path), layout=layout, required=())
    absent = [
        pl.lit(None, pl.String).alias(name) for name in layout.columns if name not in found.frame.columns
    ]
    frame = found.frame.with_columns(absent).select("row", *layout.columns)  # no lines of JSON, no columns
    return replace(found, frame=frame.cast({"count": pl.Int64}), table=True)


def _text(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _as_file(log: Log | str | Path, folder: Path) -> str:
    """Give a log as a file: the engine replays files, and in-memory logs are small."""
    if not isinstance(log, Log):
        return str(log)
    path = folder / "log.parquet"
    io.write(log, str(path))
    return str(path)


def attack(
    release: Release,
    original: Log,
    *attacks: str,
    seed: int | None = None,
    progress: Callable[[str, int, int | None], None] = silent,
    **settings: Any,
) -> Findings:
    """Attack a release with the named attacks, or with all fast ones, and score them against the truth.

    Settings go by name (`k=5`); where two attacks have the same one, pass `{"attack.name": value}` as `**`.
    """
    from querycloak.attacks.run import attack as run

    chosen = {name: _text(value) for name, value in settings.items()}
    return run(
        release.log.frame,
        release.certificate,
        original.frame,
        release.truth,
        attacks,
        chosen,
        progress,
        seed=seed,
    )


def attack_files(
    release: str,
    original: str,
    truth: Path,
    attacks: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    *,
    certificate: Path | None = None,
    write_log: str | None = None,
    write_profiles: Path | None = None,
    seed: int | None = None,
    progress: Callable[[str, int, int | None], None] = silent,
    **reading: Any,
) -> Findings:
    """Attack a release file.

    `write_log` takes the log that the one named attribution rebuilt, `write_profiles` a table of its
    guessed users, categories and counts; both are mode 0600.
    """
    from querycloak.attacks import run
    from querycloak.engines.profiler import profiles_bytes

    wanted = write_log is not None or write_profiles is not None
    if wanted:
        _check_one_attribution(attacks)
    chosen = run.prepare(attacks, settings or {}, seed)  # before long reading, in case a name is wrong
    beside = certificate or certificates.path_of(Path(release))
    needed = beside.is_file() or any(one.certified for one in chosen)
    document = certificates.read(beside) if needed else {}
    layout = io.Layout.from_dict(document["release"]["layout"]) if needed else None
    extra = frozenset[str]().union(*(one.extra for one in chosen))
    released = io.read(release, layout=layout, required=()) if needed else _read_trace(release, extra)
    before = io.read(original, **reading).frame
    asked = {"row", "user", "query", "category"}.union(*(one.recalls for one in chosen))
    before = before.select(name for name in before.columns if name in asked)

    def rebuilt(name: str, frame: pl.DataFrame) -> None:
        if write_log is not None:
            io.write(frame, write_log, io.layout_for(write_log, like=layout), private=True)
        if write_profiles is not None:
            write_private(write_profiles, profiles_bytes(frame, write_profiles.suffix))

    return run.attack(
        released.frame, document, before, read_truth(truth), attacks, settings, progress,
        seed=seed, rebuilt=rebuilt if wanted else None,
    )  # fmt: skip


def _read_trace(path: str, extra: frozenset[str]) -> Log:
    """Read a log that has no certificate, with the columns that attacks ask for, if it has them."""
    try:
        return io.read(path, required=(), keep=sorted(extra))
    except DataError:
        return io.read(path, required=())


def _check_one_attribution(attacks: Sequence[str]) -> None:
    """A rebuilt log is one attack's; linkage and identification rebuild none."""
    if len(attacks) != 1 or ATTACKS.get(attacks[0]).game not in ("attribution", "control"):
        raise UsageError(
            "what an attack rebuilt is written for exactly one attribution attack", hint="name one with `-a`"
        )


def measure(
    original: Log,
    released: Log,
    names: Sequence[str] = (),
    *,
    truth: pl.DataFrame | None = None,
    marketing: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, Any]:
    """Measure what analysts keep; a measure that does not apply says why."""
    pair = Pair(original.frame, released.frame, truth, marketing)
    found: dict[str, Any] = {}
    for name in names or MEASURES.names():
        if released.table:
            found[name] = {"not_applicable": COUNTS_ONLY}
            continue
        try:
            found[name] = MEASURES.get(name)()(pair)
        except NotApplicable as reason:
            found[name] = {"not_applicable": str(reason)}
    return found


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
    progress: Callable[[str, int, int | None], None] = silent,
) -> Comparison:
    """Protect a log in many ways, attack each release, and measure what is kept.

    Methods go as on the command line: `"cohort:k=5,10,20"`, `"rules+cohort:cohort.k=10"`. With `output` the
    report is written there, and a call that was stopped carries on.
    """
    from querycloak.engines.compare.asking import compare_files, planned
    from querycloak.engines.compare.run import compare

    asked: dict[str, Any] = {"methods": methods, "preset": preset, "attacks": attacks, "measures": measures}
    asked |= {"sample": sample, "repeats": repeats, "seconds": seconds, "seed": seed}
    shown = log if isinstance(log, Log) else str(log)
    if output is not None:
        return compare_files(shown, Path(output), progress=progress, **asked).comparison
    with tempfile.TemporaryDirectory() as folder:
        return compare(shown, planned(**asked), Path(folder), progress=progress)


def recommend(
    log: Log | str | Path,
    *,
    max_linkage: float,
    keep: str = "topics",
    attacker: str = "any",
    sample: int = 3_000,
    seed: int = 1,
    progress: Callable[[str, int, int | None], None] = silent,
) -> dict[str, Any]:
    """Search methods and settings on a sample, and propose the release that keeps most within a limit."""
    from querycloak.engines.compare.recommend import Wish, recommend

    shown = log if isinstance(log, Log) else str(log)
    wish = Wish(max_linkage, keep, attacker)
    return recommend(shown, wish, sample=sample, seed=seed, progress=progress).as_dict()


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


def verify(
    release: str | Path,
    *,
    certificate: str | Path | None = None,
    original: str | Path | None = None,
    truth: str | Path | None = None,
    secret_file: str | Path | None = None,
    public_key: str | Path | None = None,
) -> Verification:
    """Check a release against its certificate, with whatever evidence there is."""
    question = Question(
        release=Path(release),
        certificate=Path(certificate) if certificate else certificates.path_of(Path(release)),
        original=str(original) if original else None,
        truth=Path(truth) if truth else None,
        secret_file=Path(secret_file) if secret_file else None,
        public_key=Path(public_key) if public_key else None,
    )
    return verify_question(question)


def measure_files(
    release: str,
    original: str,
    names: Sequence[str] = (),
    *,
    truth: Path | None = None,
    marketing: str | None = None,
    **reading: Any,
) -> dict[str, Any]:
    """Measure a release file against the original file."""
    shown = io.read(release, required=())
    return measure(
        io.read(original, **reading),
        replace(shown, table=_is_table(Path(release), shown)),
        names,
        truth=read_truth(truth) if truth else None,
        marketing=read_marketing(marketing) if marketing else None,
    )


def own_history(
    history: str | Path, *, show: bool = False, output: Path | None = None, **reading: Any
) -> tuple[dict[str, Any], str]:
    """Say what one person's searches tell about their owner: as plain values, and in words.

    Queries themselves are given only with `show`. `output` takes a page, .html or .md, of mode 0600.
    """
    from querycloak.engines.own import look
    from querycloak.io.history import read_history
    from querycloak.report import as_text, files
    from querycloak.report.own_history import page

    if output is not None:
        files.check_target(output)
    found = look(read_history(history, **reading), generate(CROWD).frame, show=show).as_dict()
    document = page(found)
    if output is not None:
        files.write(document, output, private=True)
    return found, as_text.render(document)


def _is_table(release: Path, shown: Log) -> bool:
    """Ask the certificate whether a release is a table of counts; without one, its columns."""
    if certificates.path_of(release).is_file():
        return bool(certificates.read(certificates.path_of(release))["release"].get("table"))
    columns = set(shown.layout.columns)
    return "count" in columns and columns <= set(COUNTS)


def describe_methods() -> list[dict[str, Any]]:
    """Describe every method: what it does, promises, does not protect against, and its settings."""
    return [_description(name, METHODS.get(name)) for name in METHODS.names()]


def describe_attacks() -> list[dict[str, Any]]:
    """Describe every attack: what it does, its game, what it sees, and its settings."""
    return [_attack_description(name) for name in ATTACKS.names()]


def _attack_description(name: str) -> dict[str, Any]:
    kind = ATTACKS.get(name)
    return {
        "name": name,
        "summary": " ".join((kind.__doc__ or "").strip().partition("\n\n")[0].split()),
        "game": kind.game,
        "sees": ["truth" if name == "copy" else "release", *sorted(kind.knows)],
        "needs": sorted(kind.needs),
        "fast": kind.fast,
        "settings": kind.Settings.declarations(),
    }


def _description(name: str, method: type[Protector]) -> dict[str, Any]:
    promise = method(method.Settings(), b"\0" * 32, Texts()).promise()
    return {
        "name": name,
        "summary": (method.__doc__ or "").strip().splitlines()[0],
        "promise": _paragraph(method.__doc__ or "", "Promise:"),
        "does_not_protect_against": list(promise.does_not_protect_against),
        "settings": method.Settings.declarations(),
    }


def _paragraph(text: str, title: str) -> str:
    after = text.partition(title)[2].partition("\n\n")[0]
    return " ".join(after.split())

"""Make a release: read, replay, protect, write, audit, certify; nothing is published before all is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl

from querycloak import certificate, formats, keys
from querycloak.audits.evidence import numbered
from querycloak.dictionary import Dictionaries
from querycloak.engines import audit as auditing
from querycloak.engines.audit import AuditResult
from querycloak.engines.local import Engine, LocalEngine, Outcome, Task
from querycloak.engines.pipeline import Pipeline, Stage, certified_stages, check_kept_labels
from querycloak.engines.source import LogInput, LogSource, Progress, silent
from querycloak.engines.source_state import SourceFiles, earlier_releases_of, enter_without_source
from querycloak.errors import BrokenPromise, QueryCloakError, Refused, UsageError
from querycloak.files import check_outputs
from querycloak.formats import ReadOptions
from querycloak.formatting import plural, table
from querycloak.keys import Secret, write_private
from querycloak.log import CANONICAL, COUNTS, Log
from querycloak.truth import read_truth, write_truth

#: Columns that most audits compare.
_SEEN: Final = frozenset({"user", "query"})
#: The format in which a release is kept in memory.
IN_MEMORY: Final = "release.parquet"
_UNREADABLE: Final = "the release cannot be read back as it was written; nothing was published"


@dataclass(frozen=True)
class ReleaseJob:
    """One call of `protect`: everything that decides the result.

    Without `output` the release stays in memory. `truth` is the file for the ground truth; `keep_truth` keeps
    it in memory. A release for `evaluation` is not published: it is attacked, compared, and thrown away.
    """

    log: LogInput
    output: str | None
    stages: list[Stage]
    truth: Path | None = None
    keep_truth: bool = False
    state: Path | None = None
    source: str | None = None
    seed: int | None = None
    secret_file: Path | None = None
    sign: Path | None = None
    dry_run: bool = False
    evaluation: bool = False
    reading: ReadOptions = field(default_factory=ReadOptions)
    piece_rows: int | None = None
    progress: Progress = silent

    @property
    def file(self) -> Path | None:
        """The file of the release; None if it stays in memory or goes to standard output."""
        return None if self.output is None or self.output == "-" else Path(self.output)

    @property
    def inputs(self) -> list[object]:
        """What the run reads, and its output never replaces."""
        files = [file for stage in self.stages for file in stage.settings.files().values() if file]
        return [self.log, self.secret_file, self.sign, *files]

    @property
    def is_trial(self) -> bool:
        """Whether the release is not for publication, so that it does not count as another release."""
        return self.evaluation or self.seed is not None

    def open_source(self) -> LogSource:
        """Return the log of the job; its temporary files are in the named state folder, or the usual one."""
        return LogSource(self.log, self.reading, self.piece_rows, self.state, self.progress)


@dataclass
class Report:
    """What a run of `protect` did. Exact counts are for the operator, not for the public."""

    output: str | None
    methods: list[str]
    rows_read: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    skipped_rows: dict[str, list[int]] = field(default_factory=dict)
    dropped_columns: list[str] = field(default_factory=list)
    joined_users: int = 0
    released: int = 0
    table: bool = False
    withheld: int = 0
    reasons: dict[str, dict[str, int]] = field(default_factory=dict)
    explanation: dict[str, dict[str, Any]] = field(default_factory=dict)
    earlier_releases: int | None = None
    released_elsewhere: int | None = None
    certificate: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for `--json`."""
        return asdict(self)


@dataclass(frozen=True)
class Release:
    """A protected log with its certificate, its report and, if it was kept, the private ground truth."""

    certificate: dict[str, Any] = field(repr=False)
    report: Report = field(repr=False)
    _content: Path | bytes | None = field(default=None, repr=False)
    _truth: pl.DataFrame | Path | None = field(default=None, repr=False)
    _keep: tuple[str, ...] = field(default=(), repr=False)

    @cached_property
    def log(self) -> Log:
        """The released log; of a table, its counts. Read when it is first used."""
        if self._content is None:
            raise UsageError("a release that was not written, or went to standard output, cannot be read")
        if not self.report.table:
            return formats.read(self._content, required=(), keep=self._keep)
        layout = formats.Layout.from_dict(self.certificate["release"]["layout"])
        found = formats.read(self._content, layout=layout, required=())
        absent = [
            pl.lit(None, pl.String).alias(name) for name in layout.columns if name not in found.frame.columns
        ]
        frame = found.frame.with_columns(absent).select("row", *layout.columns)  # JSON without lines has none
        return replace(found, frame=frame.cast({"count": pl.Int64}), table=True)

    @property
    def has_truth(self) -> bool:
        """Whether the ground truth was kept."""
        return self._truth is not None

    @cached_property
    def truth(self) -> pl.DataFrame:
        """The ground truth: where each released row came from. Private, for evaluation only."""
        if self._truth is None:
            raise UsageError("the ground truth was not kept")
        return read_truth(self._truth) if isinstance(self._truth, Path) else self._truth

    def to_polars(self) -> pl.DataFrame:
        """Return the released records as a polars frame."""
        return self.log.frame.drop("row")

    def to_pandas(self) -> Any:
        """Return the released records as a pandas frame."""
        return self.to_polars().to_pandas()

    def to_arrow(self) -> Any:
        """Return the released records as an Arrow table."""
        return self.to_polars().to_arrow()

    def write(self, path: str | Path) -> None:
        """Write the released log and, beside it, an unsigned certificate with the hash of these bytes."""
        columns = [name for name in self.log.frame.columns if name != "row"]
        layout = formats.Layout.for_output(path, like=self.log.layout, columns=columns)
        sha256 = formats.write(self.log, path, layout)
        document = {name: part for name, part in self.certificate.items() if name != "signature"}
        document["release"] = document["release"] | {"sha256": sha256, "layout": layout.as_dict()}
        certificate.path_of(Path(path)).write_bytes(certificate.to_bytes(document))

    def _repr_html_(self) -> str:
        rows = [
            (one["method"], one["promise"], one["audit"], "; ".join(one["does_not_protect_against"]))
            for one in self.certificate["methods"]
        ]
        said = f"{self.report.released:,} of {self.report.rows_read:,} records released"
        return table(("method", "promise", "audit", "does not protect against"), rows, said)


class _Clock:
    """Notes how long each step took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = round(self.seconds.get(step, 0.0) + now - self._since, 3)
        self._since = now


def make_release(job: ReleaseJob, engine: Engine | None = None) -> Release:
    """Protect a log and write the release, its certificate and, if asked for, the ground truth."""
    clock = _Clock()
    _check_targets(job)
    with ExitStack() as cleanup:
        state = SourceFiles.of(job.source, job.state)
        if state is not None:
            cleanup.callback(state.unlock)
        secret = Secret.choose(job.seed, job.secret_file)
        name = keys.release_id(secret, job.source or "", len(state.earlier) if state else 0)
        key = keys.release_key(secret, job.source or "", name)
        source = job.open_source()
        cleanup.callback(source.close)
        pipeline = Pipeline(job.stages, key, Dictionaries())
        pipeline.check_ready()
        stored = state.load(job.stages, pipeline) if state is not None else []
        task = Task(job.stages, key, pipeline, stored, job.progress)
        writer, truth, released, outcome = _run(job, source, engine or LocalEngine(), task, cleanup, clock)
        report = _report(job, source, outcome, released, state)
        numbers = numbered(truth.lazy()).collect()
        if job.truth is None and not job.keep_truth:
            truth = numbers  # nobody will see it, and its texts take memory
        else:
            truth = source.users.add_raw(truth)
        original = source.original()
        audited = _audited(job, writer, source, original, numbers, released)
        report.joined_users = source.joined_users
        if not released:
            report.warnings.append(_nothing_released(job, report, original))
        clock.lap("audit")
        _complete(job, audited.methods, outcome.facts)
        if not job.is_trial and source.sha256 is not None:
            report.released_elsewhere = earlier_releases_of(source.sha256, job.source)
        entry = None
        if state is not None and not job.dry_run:
            # Before the ledger: a release that is entered there without its state would block the source.
            state.save(job.stages, outcome.stored)
            entry = state.note(name, job.stages, writer.sha256, source.sha256)
        elif not job.is_trial and not job.dry_run and source.sha256 is not None:
            enter_without_source(name, source.sha256)
        report.certificate = _certify(job, name, secret, writer, audited, entry)
        content = None if job.dry_run else _publish(job, report, writer, source, truth)
        clock.lap("publish")
    report.seconds = clock.seconds
    kept = truth if job.keep_truth else None if job.dry_run else job.truth
    return Release(report.certificate, report, content, kept, tuple(job.reading.keep))


def _complete(job: ReleaseJob, parts: list[dict[str, Any]], facts: list[dict[str, Any]]) -> None:
    """Add what is known of this release only: facts, and the limits that depend on its source."""
    for part, stage, found in zip(parts, job.stages, facts, strict=True):
        kept = stage.traits.stored_state
        unknown = kept.totals if kept is not None and job.source is None else ()
        part["facts"] |= found | dict.fromkeys(set(unknown) & found.keys())
        if not job.evaluation:
            part["does_not_protect_against"] = stage.limits(job.source)


def protect_like(document: Mapping[str, Any]) -> Callable[[Log], Release] | None:
    """Return a function that protects a log by the methods and settings of a certificate.

    None where that is impossible: for a trace without a certificate, a table of counts, a method that is not
    installed. The same log gives the same release, as far as its methods can be seeded.
    """
    if not document.get("methods") or document["release"].get("table"):
        return None
    try:
        stages = certified_stages(document)
    except QueryCloakError:
        return None
    return lambda log: make_release(ReleaseJob(log, None, stages, keep_truth=True, seed=0, evaluation=True))


def _check_targets(job: ReleaseJob) -> None:
    """Raise what would stop a release at its end, before anything is read, spent or entered."""
    if job.source is None and any(stage.traits.budget for stage in job.stages):
        raise UsageError(
            "a `budget` is for all releases of a source, and no source is named", hint="use `--source NAME`"
        )
    if not job.evaluation:
        check_kept_labels(job.stages, job.source)
    for stage in job.stages if job.reading.keep else ():
        reason = ""
        if stage.traits.needs_user_independent_input:
            reason = f"`{stage.method}` promises what no such column keeps"
        elif stage.traits.creates_rows:
            reason = f"rows of `{stage.method}` come from no row of the log"
        if reason:
            raise Refused(f"`--keep` passes a column on as it is, and {reason}", hint="leave out `--keep`")
    targets = [job.truth] if job.truth is not None else []
    if job.file is not None:
        targets += [certificate.path_of(job.file), certificate.private_path_of(job.file)]
    check_outputs([job.output, *targets], job.inputs)
    for target in targets:
        if target.is_dir() or not target.absolute().parent.is_dir():
            raise UsageError("a file to be written has no folder, or is one", hint="make the folder first")
    if job.sign is not None:
        certificate.signing_key(job.sign)


def _certify(
    job: ReleaseJob,
    name: str,
    secret: Secret,
    writer: formats.Writer,
    audited: AuditResult,
    entry: dict[str, Any] | None,
) -> certificate.Certificate:
    release = {"id": name, "source": job.source, "sha256": writer.sha256, "layout": writer.layout.as_dict()}
    counts = {"table": True} if auditing.is_table(job.stages) else {}
    document = certificate.build(
        release=release | counts,
        methods=audited.methods,
        lineage=audited.lineage,
        secret=secret,
        ledger=entry,
        own_noise=any(stage.traits.system_noise for stage in job.stages),
    )
    return certificate.sign(document, job.sign) if job.sign else document


def _run(
    job: ReleaseJob, source: LogSource, engine: Engine, task: Task, cleanup: ExitStack, clock: _Clock
) -> tuple[formats.Writer, pl.DataFrame, int, Outcome]:
    """Protect piece by piece into a file without its final name; also return truth and number of rows."""
    writer, truths, released = None, [], 0
    for part in engine.run(source, task):
        clock.lap("read and protect")
        truths.append(part.truth)
        if task.pipeline.table:
            continue
        if writer is None:
            layout = formats.Layout.for_output(job.output or IN_MEMORY, like=source.layout)
            writer = cleanup.enter_context(formats.Writer(job.output, layout, never_replace=job.inputs))
        writer.write(part.frame)
        released += part.frame.height
        job.progress("protect", released, None)
        clock.lap("write")
    outcome = engine.outcome()
    if outcome.counts is not None:
        layout = formats.Layout.for_counts(
            job.output or IN_MEMORY, outcome.counts.columns, like=source.layout
        )
        writer = cleanup.enter_context(formats.Writer(job.output, layout, never_replace=job.inputs))
        writer.write(outcome.counts)
        released = outcome.counts.height
    assert writer is not None
    writer.close()
    clock.lap("write")
    truth = pl.concat(truths).with_row_index("released_row").cast({"released_row": pl.Int64})
    return writer, truth, released, outcome


def _report(
    job: ReleaseJob, source: LogSource, outcome: Outcome, released: int, state: SourceFiles | None
) -> Report:
    table = outcome.counts is not None
    return Report(
        job.output,
        [stage.method for stage in job.stages],
        rows_read=source.rows_read,
        skipped=dict(source.skipped.counts),
        skipped_rows=source.skipped.first_rows,
        dropped_columns=list(source.dropped_columns),
        released=released,
        table=table,
        withheld=source.rows_read - source.skipped.total - (0 if table else released),
        reasons=outcome.dropped,
        explanation=outcome.explanation,
        earlier_releases=len(state.earlier) if state else None,
    )


def _nothing_released(job: ReleaseJob, report: Report, original: pl.LazyFrame) -> str:
    """Return why nothing was released, and which settings would release something."""
    reasons = [(n, name, why) for name, found in report.reasons.items() for why, n in found.items()]
    if not reasons:
        return "nothing was released: no row of the log is usable\n\nhint: check `--format` and `--map`"
    count, name, why = max(reasons)
    users = original.select(pl.col("user").n_unique()).collect().item()
    hint = next((stage.weaker_settings(users) for stage in job.stages if stage.method == name), "")
    text = f"nothing was released: {name}: {why} ({plural(count, 'search', 'searches')})"
    return f"{text}\n\nhint: {hint}" if hint else text


def _audited(
    job: ReleaseJob,
    writer: formats.Writer,
    source: LogSource,
    original: pl.LazyFrame,
    truth: pl.DataFrame,
    released: int,
) -> AuditResult:
    """Audit the bytes that would be published. Raise BrokenPromise if a guarantee fails."""
    job.progress("audit", 0, None)
    parts = []
    cells = auditing.cell_audit(job.stages, original, truth.lazy())
    for piece in _pieces(writer, tuple(dict.fromkeys((*CANONICAL, *job.reading.keep)))):
        if cells is not None:
            cells.add(piece)
        parts.append(numbered(piece.lazy().select("released_row", *_SEEN & set(piece.columns))).collect())
    if sum(part.height for part in parts) != released:
        raise BrokenPromise(_UNREADABLE)

    def spell() -> pl.LazyFrame:
        return pl.concat(_pieces(writer, (*CANONICAL, *COUNTS[-1:]))).lazy()

    release = pl.concat(parts, how="diagonal").lazy()
    texts = source.query_texts
    audited = auditing.audit(
        job.stages, release, original, truth.lazy(), spell=spell, query_texts=texts, cells=cells
    )
    if faults := audited.broken():
        raise BrokenPromise("the release failed its audit; nothing was published\n" + "\n".join(faults))
    return audited


def _pieces(writer: formats.Writer, names: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    """Read columns of the very bytes that would be published."""
    for piece in formats.pieces(writer.temporary_path, layout=writer.layout, required=()):
        if lost := [name for name in writer.layout.mapping if name not in piece.frame.columns]:
            missing = f"`{writer.layout.format}` does not read the columns {', '.join(lost)} that it writes"
            raise BrokenPromise(f"{_UNREADABLE}: {missing}")
        if piece.skipped.total:
            raise BrokenPromise(_UNREADABLE)
        frame = piece.frame.rename({"row": "released_row"})
        yield frame.select("released_row", *(name for name in names if name in frame.columns))


def _publish(
    job: ReleaseJob, report: Report, writer: formats.Writer, source: LogSource, truth: pl.DataFrame
) -> Path | bytes | None:
    """Write all files under their final names, the release last; return where the release can be read."""
    written = []
    if job.truth is not None:
        write_truth(job.truth, truth)
        written.append(str(job.truth))
    if job.file is not None:
        public, private = certificate.path_of(job.file), certificate.private_path_of(job.file)
        write_private(private, _private_part(report, source))
        public.write_bytes(certificate.to_bytes(report.certificate))
        written += [str(public), str(private)]
    content = writer.temporary_path if job.output is None else job.file
    writer.commit()
    report.written = [job.output, *written] if job.output is not None else []
    return content


def _private_part(report: Report, source: LogSource) -> bytes:
    names = ("rows_read", "skipped", "joined_users", "released", "withheld", "reasons")
    exact = {
        "schema": "querycloak/certificate-private/1",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input_sha256": source.sha256,
    } | {name: getattr(report, name) for name in names}
    return certificate.to_bytes(exact)

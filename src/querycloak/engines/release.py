"""Makes a release: read, replay, protect, write, audit, certify; nothing appears before all is well."""

from __future__ import annotations

import hashlib
import io as std_io
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from querycloak import certificate, io, keys
from querycloak.dictionary import Texts
from querycloak.engines import audit as auditing
from querycloak.engines import local
from querycloak.engines.audit import Audited
from querycloak.engines.local import LocalWork
from querycloak.engines.pipeline import Pipeline
from querycloak.engines.request import Reading, Request
from querycloak.engines.state import Book, SourceState
from querycloak.errors import BrokenPromise, Refused, UsageError
from querycloak.guarantees import numbered
from querycloak.keys import Secret, write_private
from querycloak.log import CANONICAL, COUNTS
from querycloak.registry import METHODS

if TYPE_CHECKING:
    from querycloak.engines.spark.release import SparkWork


@dataclass
class Report:
    """What a run of `protect` did, for its operator: exact counts are not for the public."""

    output: str
    methods: list[str]
    rows_read: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    skipped_rows: dict[str, list[int]] = field(default_factory=dict)
    dropped_columns: list[str] = field(default_factory=list)
    released: int = 0
    table: bool = False
    withheld: int = 0
    reasons: dict[str, dict[str, int]] = field(default_factory=dict)
    explanation: dict[str, dict[str, Any]] = field(default_factory=dict)
    earlier_releases: int = 0
    certificate: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Give the report as plain values, for `--json`."""
        return asdict(self)


class _Clock:
    """Notes how long each step took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = round(self.seconds.get(step, 0.0) + now - self._since, 3)
        self._since = now


def protect(request: Request) -> Report:
    """Protect a log file and write the release, its certificate and, if asked for, the truth."""
    clock, plan = _Clock(), _plan(request)
    report = Report(request.output, [stage.method for stage in request.stages], earlier_releases=plan.earlier)
    with ExitStack() as cleanup:
        reading = Reading(request, plan.key)
        cleanup.callback(reading.close)
        pipeline = Pipeline(request.stages, plan.key, Texts())
        pipeline.prepare()
        books: list[Book] = []
        if plan.state is not None:
            plan.state.lock()
            cleanup.callback(plan.state.unlock)
            books = plan.state.open_books(request.stages, pipeline)
        work = _work(request, reading, pipeline, plan.key, books)
        writer, truth, released = _run(request, reading, pipeline, work, cleanup, clock)
        _count(report, reading, pipeline, work, released)
        numbers = numbered(truth.lazy()).collect()
        if request.truth is None:
            truth = numbers  # nobody will see it, and its texts take room
        audited = _audited(request, writer, reading, numbers, released)
        clock.lap("audit")
        for part, facts in zip(audited.methods, work.facts(), strict=True):
            part["facts"] |= facts
        report.certificate = _certify(request, plan, writer, audited, pipeline)
        if not request.dry_run:
            if plan.state is not None:  # first: what was spent must be known even if the rest fails
                plan.state.close_books(request.stages, pipeline, work.books())
            report.written = _publish(request, report, writer, truth)
        clock.lap("publish")
    report.seconds = clock.seconds
    return report


@dataclass(frozen=True)
class _Plan:
    """What is decided before anything is read: the secret, the key, and this release's place."""

    secret: Secret
    state: SourceState | None
    earlier: int
    name: str
    key: bytes


def _plan(request: Request) -> _Plan:
    if request.source is None and any(getattr(stage.settings, "budget", 0) for stage in request.stages):
        raise UsageError(
            "a `budget` is for all releases of a source, and no source is named", hint="use `--source NAME`"
        )
    _check_targets(request)
    state, source = SourceState.of(request.source, request.state), request.source or ""
    secret, earlier = Secret.choose(request.seed, request.secret_file), len(state.earlier) if state else 0
    name = keys.release_name(secret, source, earlier)
    return _Plan(secret, state, earlier, name, keys.release_key(secret, source, name))


def _check_targets(request: Request) -> None:
    """Find out what would stop a release at its end before anything is spent or entered."""
    kept = [s.method for s in request.stages if METHODS.get(s.method).wants_alone]
    if request.keep and kept:
        raise Refused(
            f"`--keep` passes a column on as it is, and `{kept[0]}` promises what no such column keeps",
            hint="leave out `--keep`",
        )
    making = [s.method for s in request.stages if METHODS.get(s.method).makes_rows]
    if request.keep and making:
        raise Refused(
            f"`--keep` passes a column on as it is, and rows of `{making[0]}` come from no row of the log",
            hint="leave out `--keep`",
        )
    targets = [request.truth] if request.truth is not None else []
    if request.output != "-":
        output = Path(request.output)
        targets += [certificate.path_of(output), certificate.private_path_of(output)]
    for target in targets:
        if target.is_dir() or not target.absolute().parent.is_dir():
            raise UsageError("a file to be written has no folder, or is one", hint="make the folder first")
    if request.sign is not None:
        certificate.signing_key(request.sign)


def _certify(
    request: Request, plan: _Plan, writer: io.Writer, audited: Audited, pipeline: Pipeline
) -> certificate.Certificate:
    """Write the certificate, after the release has got its entry in the ledger."""
    layout = writer.layout.as_dict()
    release: dict[str, Any] = {
        "id": plan.name,
        "source": request.source,
        "sha256": writer.sha256,
        "layout": layout,
    }
    if pipeline.table:
        release["table"] = True
    entry = _enter(plan, request, writer.sha256) if plan.state and not request.dry_run else None
    document = certificate.build(
        release=release,
        methods=audited.methods,
        lineage=audited.lineage,
        secret=plan.secret,
        ledger=entry,
        own_noise=any(stage.own_noise for stage in pipeline),
    )
    return certificate.sign(document, request.sign) if request.sign else document


def _enter(plan: _Plan, request: Request, sha256: str) -> dict[str, Any]:
    assert plan.state is not None
    methods = [{"method": s.method, "settings": s.settings.as_dict()} for s in request.stages]
    entry = plan.state.note(
        {"source": request.source, "release": plan.name, "methods": methods, "sha256": sha256}
    )
    return {"head": entry["hash"], "entry": entry["number"], "earlier_releases_of_source": plan.earlier}


def _work(
    request: Request, reading: Reading, pipeline: Pipeline, key: bytes, books: list[Book]
) -> LocalWork | SparkWork:
    """Choose who does the work."""
    if request.engine == "spark":
        from querycloak.engines.spark.release import SparkWork

        return SparkWork(request, reading, key, books)
    warming = threading.Thread(target=local.warm_up, args=(request.stages,), daemon=True)
    warming.start()  # while the file is read
    return LocalWork(pipeline, reading.pieces())


def _run(
    request: Request,
    reading: Reading,
    pipeline: Pipeline,
    work: LocalWork | SparkWork,
    cleanup: ExitStack,
    clock: _Clock,
) -> tuple[io.Writer, pl.DataFrame, int]:
    """Protect piece by piece into a file that does not have its final name yet; count its rows."""
    writer, truths, released = None, [], 0
    for part in work.parts():
        clock.lap("read and protect")
        truths.append(part.truth)
        if pipeline.table:
            continue
        if writer is None:
            layout = io.layout_for(request.output, like=reading.layout)
            writer = cleanup.enter_context(io.Writer(request.output, layout))
        writer.write(part.frame)
        released += part.frame.height
        request.progress("protect", released, None)
        clock.lap("write")
    if pipeline.table:
        writer, released = _write_table(request, reading, work.counts(), cleanup)
    assert writer is not None
    writer.close()
    clock.lap("write")
    truth = pl.concat(truths).with_row_index("released_row").cast({"released_row": pl.Int64})
    return writer, truth, released


def _write_table(
    request: Request, reading: Reading, counts: pl.DataFrame, cleanup: ExitStack
) -> tuple[io.Writer, int]:
    """Write the counts of a method whose result has no records."""
    layout = io.table_layout(request.output, counts.columns, like=reading.layout)
    writer = cleanup.enter_context(io.Writer(request.output, layout))
    writer.write(counts)
    return writer, counts.height


def _count(
    report: Report, reading: Reading, pipeline: Pipeline, work: LocalWork | SparkWork, released: int
) -> None:
    report.rows_read = reading.rows_read
    report.skipped = dict(reading.skipped.counts)
    report.skipped_rows = reading.skipped.first_rows
    report.dropped_columns = list(reading.dropped_columns)
    report.released, report.table = released, pipeline.table
    shown = 0 if pipeline.table else released
    report.withheld = reading.rows_read - reading.skipped.total - shown
    report.reasons = work.dropped()
    report.explanation = work.explanation()


def _audited(
    request: Request, writer: io.Writer, reading: Reading, truth: pl.DataFrame, released: int
) -> Audited:
    """Audit the very bytes that would be published; break off when a promise is broken."""
    request.progress("audit", 0, None)
    original = reading.original()
    release = _numbered_release(writer, released)
    audited = auditing.audit(
        request.stages, release.lazy(), original, truth.lazy(), spell=lambda: _written(writer).lazy()
    )
    if faults := audited.broken():
        raise BrokenPromise("the release broke a promise; nothing was published\n" + "\n".join(faults))
    return audited


def _numbered_release(writer: io.Writer, rows: int) -> pl.DataFrame:
    """Read the release piece by piece and keep the numbers that audits compare."""
    parts = [numbered(piece.lazy()).collect() for piece in _pieces(writer, ("user", "query"))]
    if sum(part.height for part in parts) != rows:
        raise BrokenPromise("the release cannot be read back as it was written; nothing was published")
    return pl.concat(parts)


def _written(writer: io.Writer) -> pl.DataFrame:
    return pl.concat(_pieces(writer, (*CANONICAL, *COUNTS[-1:])))


def _pieces(writer: io.Writer, names: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    """Read columns of the very bytes that would be published."""
    for piece in io.pieces(writer.unfinished, layout=writer.layout, required=()):
        if piece.skipped.total:
            raise BrokenPromise("the release cannot be read back as it was written; nothing was published")
        frame = piece.frame.rename({"row": "released_row"})
        yield frame.select("released_row", *(name for name in names if name in frame.columns))


def _publish(request: Request, report: Report, writer: io.Writer, truth: pl.DataFrame) -> list[str]:
    """Give everything its final name, the release last."""
    written = []
    if request.truth is not None:
        write_private(request.truth, truth_bytes(truth))
        written.append(str(request.truth))
    if request.output != "-":
        output = Path(request.output)
        write_private(certificate.private_path_of(output), _private_part(request, report))
        certificate.path_of(output).write_bytes(certificate.to_bytes(report.certificate))
        written += [str(certificate.path_of(output)), str(certificate.private_path_of(output))]
    writer.commit()
    return [request.output, *written]


def truth_bytes(truth: pl.DataFrame) -> bytes:
    """Write the truth as a Parquet file."""
    buffer = std_io.BytesIO()
    truth.write_parquet(buffer)
    return buffer.getvalue()


def _private_part(request: Request, report: Report) -> bytes:
    exact = {
        "schema": "querycloak/certificate-private/1",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input_sha256": _sha256(request.log),
        "rows_read": report.rows_read,
        "skipped": report.skipped,
        "released": report.released,
        "withheld": report.withheld,
        "reasons": report.reasons,
    }
    return certificate.to_bytes(exact)


def _sha256(log: str) -> str | None:
    path = Path(log)
    if log == "-" or not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

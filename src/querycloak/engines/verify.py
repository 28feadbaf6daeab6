"""Checks a release against its certificate: what holds, what cannot be told, what is broken."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import polars as pl

from querycloak import certificate, formats, keys
from querycloak.audits.evidence import Part
from querycloak.dictionary import Dictionaries
from querycloak.engines import audit as auditing
from querycloak.engines import local
from querycloak.engines.pipeline import Pipeline, Stage, certified_stages
from querycloak.engines.source import LogSource
from querycloak.errors import DataError, QueryCloakError, UsageError
from querycloak.formats import ReadOptions
from querycloak.guarantee import rows_text
from querycloak.log import Log
from querycloak.truth import read_truth

#: The check that recomputes the release.
CHECK: Final = "the secret gives the same records under the same labels"
#: The column in which lines of a live stream have their number.
_NUMBERS = ("offset",)


@dataclass
class Verification:
    """Three lists: what was checked and holds, what this evidence cannot show, what is broken."""

    checked: list[dict[str, str]] = field(default_factory=list)
    not_checkable: list[dict[str, str]] = field(default_factory=list)
    broken: list[dict[str, str]] = field(default_factory=list)

    def add(self, about: str, check: str, verdict: str, detail: str = "") -> None:
        """Add a check to the list of its verdict."""
        lists = {"kept": self.checked, "broken": self.broken}
        line = {"about": about, "check": check, "detail": detail}
        lists.get(verdict, self.not_checkable).append(line)

    def add_fault(self, about: str, check: str, fault: str) -> None:
        """Add a check that is broken if there is a fault."""
        self.add(about, check, "broken" if fault else "kept", fault)

    @property
    def holds(self) -> bool:
        """Whether nothing is broken."""
        return not self.broken

    def as_dict(self) -> dict[str, Any]:
        """Return the lists as plain values, for `--json`."""
        return {"checked": self.checked, "not_checkable": self.not_checkable, "broken": self.broken}


@dataclass(frozen=True)
class VerifyJob:
    """One call of `verify`: the release and whatever evidence the caller has."""

    release: Path
    certificate: Path | None = None
    original: str | None = None
    truth: Path | None = None
    secret_file: Path | None = None
    public_key: Path | None = None
    format: str | None = None
    mapping: dict[str, str] = field(default_factory=dict)


def verify(job: VerifyJob) -> Verification:
    """Check schema, hash and signature, then every promise, even when someone fixed up the hash."""
    if job.original is None and (job.truth is not None or job.secret_file is not None):
        raise UsageError("`--truth` and `--secret-file` need `--original`", hint="name the log with it")
    if job.original is not None and job.truth is None and job.secret_file is None:
        raise UsageError(
            "`--original` alone shows nothing", hint="give `--truth` or `--secret-file` with it, or neither"
        )
    document = certificate.read(job.certificate or certificate.path_of(job.release))
    if "stream" in document["release"] and job.original is not None:
        raise UsageError(
            "lines of a live stream are checked without the original",
            hint="leave out `--original`: who waited when these lines left is in no log",
        )
    result = Verification()
    result.add("certificate", "the certificate fits its schema", "kept")
    _check_hash(job.release, document, result)
    _check_signature(job, document, result)
    _check_promises(job, document, result)
    if job.secret_file is not None:
        _recompute(job, certified_stages(document), document, result)
    return result


def _check_hash(release: Path, document: certificate.Certificate, result: Verification) -> None:
    try:
        with release.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        raise DataError("the release cannot be read") from None
    same = found == document["release"]["sha256"]
    fault = "" if same else "the file is not the one that was certified"
    result.add_fault("integrity", "the release has the SHA-256 of its certificate", fault)


def _check_signature(job: VerifyJob, document: certificate.Certificate, result: Verification) -> None:
    what = "the certificate is signed by the given key"
    if job.public_key is not None:
        result.add_fault("signature", what, certificate.signature_fault(document, job.public_key))
    elif "signature" in document:
        result.add("signature", what, "not checkable", "no --public-key was given")


def _check_promises(job: VerifyJob, document: certificate.Certificate, result: Verification) -> None:
    release = _read_release(job, document, result)
    if release is None:
        return
    original, truth = _evidence(job)
    part = Part() if "stream" in document["release"] else None
    found = auditing.audit(certified_stages(document), release, original, truth, part=part)
    for about, finding in found.findings():
        result.add(about, finding.check, finding.verdict, finding.detail)


def _read_release(
    job: VerifyJob, document: certificate.Certificate, result: Verification
) -> pl.LazyFrame | None:
    try:
        live = "stream" in document["release"]
        layout = formats.Layout.from_dict(document["release"]["layout"])
        log = formats.read(str(job.release), layout=layout, required=(), keep=_NUMBERS if live else ())
    except QueryCloakError as error:
        result.add_fault("integrity", "the release can be read", error.message)
        return None
    if log.skipped.total:
        fault = f"{log.skipped.total:,} rows cannot"
        result.add_fault("integrity", "every row of the release can be read", fault)
    _check_stream(log, document, result)
    if log.dropped_columns and auditing.is_table(certified_stages(document)):
        fault = f"{len(log.dropped_columns)} further columns are there"
        result.add_fault("integrity", "the table has the columns of its certificate", fault)
    return log.frame.with_row_index("released_row").cast({"released_row": pl.Int64}).drop("row").lazy()


def _check_stream(log: Log, document: certificate.Certificate, result: Verification) -> None:
    """See that lines of a live stream are those that the certificate names, and that it found no fault.

    Files with a fault are never published, but a live stream is certified after the fact.
    """
    stream = document["release"].get("stream")
    if stream is None:
        return
    check = f"the lines are those from {stream['first']} to {stream['last']}"
    expected = pl.int_range(stream["first"], stream["last"] + 1, dtype=pl.Int64, eager=True)
    fault = "some are" if document["audit"] == "broken" else ""
    result.add_fault("certificate", "no promise was broken when it was made", fault)
    shown = log.frame.get_column("offset", default=pl.Series([], dtype=pl.String))
    same = shown.cast(pl.Int64, strict=False).equals(expected, check_names=False)
    result.add_fault("integrity", check, "" if same else "they are others")


def _evidence(job: VerifyJob) -> tuple[pl.LazyFrame | None, pl.LazyFrame | None]:
    if job.original is None or job.truth is None:
        return None, None
    original = formats.read(job.original, format=job.format, mapping=job.mapping)
    return original.frame.lazy(), read_truth(job.truth).lazy()


def _recompute(job: VerifyJob, stages: list[Stage], document: dict[str, Any], result: Verification) -> None:
    """Recompute every label; say which rows differ, or why it cannot be done."""
    secret = keys.Secret.from_file(job.secret_file)  # type: ignore[arg-type]
    source = document["release"]["source"] or ""
    earlier = int((document.get("ledger") or {}).get("earlier_releases_of_source", 0))
    if not keys.matches_release_id(secret, source, earlier, document["release"]["id"]):
        raise UsageError("this is not the secret that the release was made with", hint="look for its file")
    reason = ""
    if any(stage.traits.system_noise for stage in stages):
        reason = "its noise is the operating system's, which no secret can repeat"
    elif earlier and any(_began_earlier(stage) for stage in stages):
        reason = "what it did depends on earlier releases, and their book has gone on since"
    else:
        key = keys.release_key(secret, source, document["release"]["id"])
        try:
            result.add_fault("release", CHECK, _difference(_made_again(job, stages, key), job, document))
        except (UsageError, DataError) as error:
            reason = error.message  # a file of the method is elsewhere: a certificate has no folders
    if reason:
        result.add("release", CHECK, "not checkable", reason)


def _began_earlier(stage: Stage) -> bool:
    """Whether a second release continues the first: cohorts do, and budgets that drop users."""
    kept, budget = stage.traits.stored_state, stage.traits.budget
    if kept is not None and kept.shared:
        return budget is not None and budget.when_spent == "drop"
    return kept is not None


def _made_again(job: VerifyJob, stages: list[Stage], key: bytes) -> Iterator[pl.DataFrame]:
    assert job.original is not None
    source = LogSource(job.original, ReadOptions(job.format, job.mapping), spool_folder=job.release.parent)
    try:
        for part in local.run(Pipeline(stages, key, Dictionaries()), source.pieces(key, stages)):
            yield part.frame
    finally:
        source.close()


def _difference(made: Iterator[pl.DataFrame], job: VerifyJob, document: dict[str, Any]) -> str:
    """Write what was made again as the release was written, read both, and compare every column."""
    layout = formats.Layout.from_dict(document["release"]["layout"])
    with tempfile.TemporaryDirectory() as folder:  # mode 0700
        path = Path(folder, job.release.name)
        with formats.Writer(path, layout, private=True) as writer:
            for frame in made:
                writer.write(frame)
            writer.commit()
        again = formats.read(str(path), layout=layout, required=()).frame
    shown = formats.read(str(job.release), layout=layout, required=()).frame
    if again.height != shown.height or again.columns != shown.columns:
        return f"the release has {shown.height:,} rows, and the secret makes {again.height:,}"
    other = pl.Series([False]).new_from_index(0, shown.height)
    for name in shown.columns:
        other = other | shown[name].ne_missing(again[name])
    rows = other.arg_true().to_list()
    return f"{rows_text(rows, len(rows))} differ from what the secret makes" if rows else ""

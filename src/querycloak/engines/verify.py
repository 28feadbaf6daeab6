"""Checks a release against its certificate: what holds, what cannot be told, what is broken."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from querycloak import certificate, io
from querycloak.engines import audit as auditing
from querycloak.engines import recompute
from querycloak.engines.pipeline import Stage
from querycloak.errors import DataError, QueryCloakError, UsageError
from querycloak.guarantees import Part
from querycloak.log import Log
from querycloak.registry import METHODS

#: The column in which lines of a live stream have their number.
_NUMBERS = ("offset",)


@dataclass
class Verification:
    """Three lists: what was checked and holds, what this evidence cannot show, what is broken."""

    checked: list[dict[str, str]] = field(default_factory=list)
    not_checkable: list[dict[str, str]] = field(default_factory=list)
    broken: list[dict[str, str]] = field(default_factory=list)

    def add(self, about: str, check: str, verdict: str, detail: str = "") -> None:
        """Put a check on the list where its verdict belongs."""
        lists = {"kept": self.checked, "broken": self.broken}
        line = {"about": about, "check": check, "detail": detail}
        lists.get(verdict, self.not_checkable).append(line)

    @property
    def holds(self) -> bool:
        """Say whether nothing is broken."""
        return not self.broken

    def as_dict(self) -> dict[str, Any]:
        """Give the lists as plain values, for `--json`."""
        return {"checked": self.checked, "not_checkable": self.not_checkable, "broken": self.broken}


@dataclass(frozen=True)
class Question:
    """One call of `verify`: the release and whatever evidence the caller has."""

    release: Path
    certificate: Path | None = None
    original: str | None = None
    truth: Path | None = None
    secret_file: Path | None = None
    public_key: Path | None = None
    format: str | None = None
    mapping: dict[str, str] = field(default_factory=dict)


def verify(question: Question) -> Verification:
    """Check schema, hash and signature, then every promise, even when someone fixed up the hash."""
    if question.original is None and (question.truth is not None or question.secret_file is not None):
        raise UsageError("`--truth` and `--secret-file` need `--original`", hint="name the log with it")
    if question.original is not None and question.truth is None and question.secret_file is None:
        raise UsageError(
            "`--original` alone shows nothing", hint="give `--truth` or `--secret-file` with it, or neither"
        )
    document = certificate.read(question.certificate or certificate.path_of(question.release))
    if "stream" in document["release"] and question.original is not None:
        raise UsageError(
            "lines of a live stream are checked without the original",
            hint="leave out `--original`: who waited when these lines left is in no log",
        )
    result = Verification()
    result.add("certificate", "the certificate fits its schema", "kept")
    _check_hash(question.release, document, result)
    _check_signature(question, document, result)
    _check_promises(question, document, result)
    if question.secret_file is not None:
        recompute.check(question, stages_of(document), document, result)
    return result


def _check_hash(release: Path, document: certificate.Certificate, result: Verification) -> None:
    try:
        with release.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        raise DataError("the release cannot be read") from None
    same = found == document["release"]["sha256"]
    detail = "" if same else "the file is not the one that was certified"
    result.add(
        "integrity", "the release has the SHA-256 of its certificate", "kept" if same else "broken", detail
    )


def _check_signature(question: Question, document: certificate.Certificate, result: Verification) -> None:
    what = "the certificate is signed by the given key"
    if question.public_key is not None:
        fault = certificate.signature_fault(document, question.public_key)
        result.add("signature", what, "broken" if fault else "kept", fault)
    elif "signature" in document:
        result.add("signature", what, "not checkable", "no --public-key was given")


def _check_promises(question: Question, document: certificate.Certificate, result: Verification) -> None:
    release = _read_release(question, document, result)
    if release is None:
        return
    original, truth = _evidence(question)
    part = Part() if "stream" in document["release"] else None
    found = auditing.audit(stages_of(document), release, original, truth, part=part)
    for about, finding in found.findings():
        result.add(about, finding.check, finding.verdict, finding.detail)


def stages_of(document: certificate.Certificate) -> list[Stage]:
    """Rebuild the stages that a certificate names."""
    parts = document["methods"]
    try:
        return [
            Stage(part["method"], METHODS.get(part["method"]).Settings(**part["settings"])) for part in parts
        ]
    except TypeError:
        raise DataError("the certificate names a setting that its method does not have") from None


def _read_release(
    question: Question, document: certificate.Certificate, result: Verification
) -> pl.LazyFrame | None:
    try:
        live = "stream" in document["release"]
        layout = io.Layout.from_dict(document["release"]["layout"])
        log = io.read(str(question.release), layout=layout, required=(), keep=_NUMBERS if live else ())
    except QueryCloakError as error:
        result.add("integrity", "the release can be read", "broken", error.message)
        return None
    if log.skipped.total:
        result.add(
            "integrity",
            "every row of the release can be read",
            "broken",
            f"{log.skipped.total:,} rows cannot",
        )
    _check_stream(log, document, result)
    if log.dropped_columns and auditing.is_table(stages_of(document)):
        further = f"{len(log.dropped_columns)} further columns are there"
        result.add("integrity", "the table has the columns of its certificate", "broken", further)
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
    broken = "some are" if document["audit"] == "broken" else ""
    result.add(
        "certificate", "no promise was broken when it was made", "broken" if broken else "kept", broken
    )
    shown = log.frame.get_column("offset", default=pl.Series([], dtype=pl.String))
    same = shown.cast(pl.Int64, strict=False).equals(expected, check_names=False)
    result.add("integrity", check, "kept" if same else "broken", "" if same else "they are others")


def _evidence(question: Question) -> tuple[pl.LazyFrame | None, pl.LazyFrame | None]:
    if question.original is None or question.truth is None:
        return None, None
    original = io.read(question.original, format=question.format, mapping=question.mapping)
    return original.frame.lazy(), read_truth(question.truth).lazy()


def read_truth(path: Path) -> pl.DataFrame:
    """Read the private truth of a release."""
    needed = {"released_row", "original_row", "original_user", "released_after"}
    try:
        truth = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        raise DataError("the truth file cannot be read as Parquet") from None
    if missing := needed - set(truth.columns):
        raise DataError(f"the truth file lacks {', '.join(sorted(missing))}")
    return truth

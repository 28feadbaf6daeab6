"""Checks a release against its certificate: what holds, what cannot be told, what is broken."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from querycloak import certificate as certificates
from querycloak import formats, keys, temporary_files
from querycloak.audits.evidence import Part
from querycloak.dictionary import Dictionaries
from querycloak.engines import audit as auditing
from querycloak.engines import local
from querycloak.engines.pipeline import Pipeline, Stage, certified_stages
from querycloak.engines.source import LogSource, read_log
from querycloak.errors import DataError, QueryCloakError, UsageError
from querycloak.formats import ReadOptions
from querycloak.guarantee import rows_text
from querycloak.ledger import KEY, read_chain
from querycloak.log import Log
from querycloak.truth import read_truth

#: The check that recomputes the release.
CHECK: Final = "the secret gives the same records under the same labels"
#: The check that nobody changed the words of a certificate.
PROMISES: Final = "the certificate states the guarantee and the limits of these settings"
#: The check that the file holds nothing but the released records.
LAYOUT: Final = "the release has exactly the columns and records of its layout"
#: The checks of a ledger.
CHAIN: Final = "the chain of the ledger is whole"
ENTRY: Final = "the ledger holds the entry of this release"
#: The column in which lines of a live stream have their number.
_NUMBERS = ("offset",)


@dataclass
class Verification:
    """Checks by verdict: passed, not testable with this evidence, failed, not applicable."""

    checked: list[dict[str, str]] = field(default_factory=list)
    not_checkable: list[dict[str, str]] = field(default_factory=list)
    broken: list[dict[str, str]] = field(default_factory=list)
    not_applicable: list[dict[str, str]] = field(default_factory=list)

    def add(self, about: str, check: str, verdict: str, detail: str = "") -> None:
        """Add a check to the list of its verdict."""
        lists = {"kept": self.checked, "broken": self.broken, "not applicable": self.not_applicable}
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
        return {
            "checked": self.checked,
            "not_checkable": self.not_checkable,
            "broken": self.broken,
            "not_applicable": self.not_applicable,
        }


def verify(
    release: str | Path,
    *,
    certificate: str | Path | None = None,
    original: str | Path | None = None,
    truth: str | Path | None = None,
    secret_file: str | Path | None = None,
    public_key: str | Path | None = None,
    ledger: str | Path | None = None,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
) -> Verification:
    """Check a release against its certificate, with the evidence that is given.

    Every check is made even if the hash is right: both can have been changed. `ledger` is the file of the
    release's source, or a copy: it must hold the entry that the certificate names.
    """
    _check_evidence(original, truth or secret_file)
    path = Path(release)
    document = certificates.read(Path(certificate) if certificate else certificates.path_of(path))
    if "stream" in document["release"] and original:
        raise UsageError(
            "lines of a live stream are checked without the original",
            hint="leave out `--original`: who waited when these lines left is in no log",
        )
    result = Verification()
    result.add("certificate", "the certificate fits its schema", "kept")
    _check_promises(document, result)
    _check_hash(path, document, result)
    _check_signature(public_key, document, result)
    if ledger is not None:
        _check_ledger(Path(ledger), document, result)
    options = ReadOptions(format, mapping or {}, least_usable=None)
    if (shown := _read_release(path, document, result)) is not None:
        keep = [] if document["release"].get("table") else document["release"]["layout"]["kept"]
        reading = replace(options, keep=keep)
        before = read_log(str(original), reading).frame.lazy() if original and truth else None
        known = read_truth(Path(truth)).lazy() if truth else None
        part = Part() if "stream" in document["release"] else None
        stages = certified_stages(document)
        if (cells := auditing.cell_audit(stages, before, known)) is not None:
            cells.add(shown.select(pl.exclude(_NUMBERS)).collect())
        found = auditing.audit(stages, shown, before, known, part=part, cells=cells)
        for about, finding in found.findings():
            result.add(about, finding.check, finding.verdict, finding.detail)
    if original and secret_file:
        source = LogSource(str(original), options)
        _recompute(path, source, keys.Secret.from_file(Path(secret_file)), document, result)
    return result


def _check_evidence(original: str | Path | None, origin: str | Path | None) -> None:
    """Raise UsageError if only one is given of the original log and a file about the origin of rows."""
    if origin and not original:
        raise UsageError("`--truth` and `--secret-file` need `--original`", hint="name the log with it")
    if original and not origin:
        raise UsageError(
            "`--original` alone shows nothing", hint="give `--truth` or `--secret-file` with it, or neither"
        )


def _check_promises(document: certificates.Certificate, result: Verification) -> None:
    """Compare the guarantees and limits of a certificate with those that its methods state."""
    if document["schema"] != certificates.SCHEMA:
        result.add("certificate", PROMISES, "not checkable", "it is of an earlier version, in other words")
        return
    for part, stage in zip(document["methods"], certified_stages(document), strict=True):
        own = stage.promise()
        # The state of a service is not bound to its ledger.
        live = "stream" in document["release"]
        limits = list(own.does_not_protect_against) if live else stage.limits(document["release"]["source"])
        stated = part["promise"], part["does_not_protect_against"], part.get("facts", {})
        facts = {name: stated[2].get(name) for name in own.facts}
        same = stated[:2] == (own.statement, limits) and facts == own.facts
        fault = "" if same else f"those of `{stage.method}` are others"
        result.add_fault(stage.method, PROMISES, fault)


def _check_hash(release: Path, document: certificates.Certificate, result: Verification) -> None:
    try:
        with release.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        raise DataError("the release cannot be read") from None
    same = found == document["release"]["sha256"]
    fault = "" if same else "the file is not the one that was certified"
    result.add_fault("integrity", "the release has the SHA-256 of its certificate", fault)


def _check_signature(
    public_key: str | Path | None, document: certificates.Certificate, result: Verification
) -> None:
    what = "the certificate is signed by the given key"
    if public_key:
        result.add_fault("signature", what, certificates.signature_fault(document, Path(public_key)))
    elif "signature" in document:
        result.add("signature", what, "not checkable", "no --public-key was given")


def _check_ledger(path: Path, document: certificates.Certificate, result: Verification) -> None:
    """Look for the entry that the certificate names: a ledger that was put back does not have it."""
    place = document["ledger"]
    if place is None:
        result.add("ledger", ENTRY, "not checkable", "the certificate names no ledger")
        return
    try:
        chain = read_chain(path)
    except DataError as error:
        result.add_fault("ledger", CHAIN, error.message)
        return
    missing = "" if chain.authentic else f"{KEY} is not beside it"
    result.add("ledger", CHAIN, "not checkable" if missing else "kept", missing)
    entries = {entry["number"]: entry["hash"] for entry in chain.entries}
    fault = f"it ends at entry {len(entries):,}, the certificate names entry {place['entry']:,}"
    if place["entry"] in entries:
        same = entries[place["entry"]] == place["head"]
        fault = "" if same else f"entry {place['entry']:,} is another one"
    result.add_fault("ledger", ENTRY, fault)


def _read_release(
    release: Path, document: certificates.Certificate, result: Verification
) -> pl.LazyFrame | None:
    try:
        live = "stream" in document["release"]
        layout = formats.Layout.from_dict(document["release"]["layout"])
        log = formats.read(str(release), layout=layout, required=(), keep=_NUMBERS if live else ())
    except QueryCloakError as error:
        result.add_fault("integrity", "the release can be read", error.message)
        return None
    if log.skipped.total:
        fault = f"{log.skipped.total:,} rows cannot"
        result.add_fault("integrity", "every row of the release can be read", fault)
    _check_stream(log, document, result)
    if not live and not log.skipped.total:
        result.add_fault("integrity", LAYOUT, formats.layout_fault(release, log, layout))
    return log.frame.with_row_index("released_row").cast({"released_row": pl.Int64}).drop("row").lazy()


def _check_stream(log: Log, document: certificates.Certificate, result: Verification) -> None:
    """See that lines of a live stream are those that the certificate names, and that it found no fault.

    Files with a fault are never published, but a live stream is certified after the fact.
    """
    stream = document["release"].get("stream")
    if stream is None:
        return
    check = f"the lines are those from {stream['first']} to {stream['last']}"
    expected = pl.int_range(stream["first"], stream["last"] + 1, dtype=pl.Int64, eager=True)
    fault = "some are" if document["audit"] == "broken" else ""
    result.add_fault("certificate", "no check failed when the certificate was made", fault)
    shown = log.frame.get_column("offset", default=pl.Series([], dtype=pl.String))
    same = shown.cast(pl.Int64, strict=False).equals(expected, check_names=False)
    result.add_fault("integrity", check, "" if same else "they are others")


def _recompute(
    release: Path, log: LogSource, secret: keys.Secret, document: dict[str, Any], result: Verification
) -> None:
    """Recompute every label; say which rows differ, or why it cannot be done."""
    stages, source = certified_stages(document), document["release"]["source"] or ""
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
            result.add_fault("release", CHECK, _difference(_made_again(log, stages, key), release, document))
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


def _made_again(log: LogSource, stages: list[Stage], key: bytes) -> Iterator[pl.DataFrame]:
    try:
        for part in local.run(Pipeline(stages, key, Dictionaries()), log.pieces(key, stages)):
            yield part.frame
    finally:
        log.close()


def _difference(made: Iterator[pl.DataFrame], release: Path, document: certificates.Certificate) -> str:
    """Write what was made again as the release was written, read both, and compare every column."""
    layout = formats.Layout.from_dict(document["release"]["layout"])
    with temporary_files.new_folder() as folder:
        path = Path(folder.path, release.name)
        with formats.Writer(path, layout, private=True) as writer:
            for frame in made:
                writer.write(frame)
            writer.commit()
        again = formats.read(str(path), layout=layout, required=()).frame
    shown = formats.read(str(release), layout=layout, required=()).frame
    if again.height != shown.height or again.columns != shown.columns:
        return f"the release has {shown.height:,} rows, and the secret makes {again.height:,}"
    other = pl.Series([False]).new_from_index(0, shown.height)
    for name in shown.columns:
        other = other | shown[name].ne_missing(again[name])
    rows = other.arg_true().to_list()
    return f"{rows_text(rows, len(rows))} differ from what the secret makes" if rows else ""

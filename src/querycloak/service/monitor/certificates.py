"""Certificates of the released lines, period by period; on disk and in the ledger, across restarts."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from querycloak import certificate, formats
from querycloak.certificate import Certificate
from querycloak.engines import audit as auditing
from querycloak.engines.pipeline import Stage
from querycloak.errors import Gone, NotFound
from querycloak.files import private_folder
from querycloak.guarantee import Finding
from querycloak.keys import Secret, write_private
from querycloak.ledger import Ledger
from querycloak.log import CANONICAL
from querycloak.service.monitor.stream_audit import SliceAudit, read_pieces, summarise
from querycloak.service.sinks.released_log import ReleasedLog

ALL_AUDITED: Final = "every line of the period was audited"
#: Source name in the ledger and in certificates.
SOURCE: Final = "service"
#: Certificates that the overview lists.
LISTED: Final = 24
_NAME: Final = re.compile(r"[0-9]{6,}\.json")
_log = logging.getLogger("querycloak.service")


@dataclass
class Period:
    """The lines since the last certificate, from offset `first` on, and the audits of their slices."""

    number: int
    first: int
    begun: float
    stages: list[Stage]
    audits: list[SliceAudit] = field(default_factory=list)

    def add(self, found: SliceAudit | None) -> None:
        """Add the audit of a slice."""
        if found is not None and found.last >= self.first:
            self.audits.append(found)

    def audited(self, first: int, last: int) -> Finding:
        """Return whether audits covered every line; the ground truth is lost in a restart."""
        missed, expected = 0, first
        for one in sorted(self.audits, key=lambda one: one.first):
            missed += max(0, min(one.first, last + 1) - expected)
            expected = max(expected, one.last + 1)
        missed += max(0, last + 1 - expected)
        if not missed:
            return Finding(ALL_AUDITED, "kept")
        many = f"{missed:,} of {last + 1 - first:,} lines could not be audited"
        return Finding(
            ALL_AUDITED, "not checkable", f"{many}: they left before a restart, or faster than they can be"
        )

    def findings(self) -> tuple[list[dict[str, Any]], list[Finding]]:
        """Return the summary of all audits, by method and for the lineage."""
        if self.audits:
            return summarise(self.audits)
        found = auditing.not_audited(self.stages)
        return found.methods, found.lineage


class LineDigest:
    """SHA-256 of the lines from `first` on, computed while the log still has them."""

    def __init__(self, log: ReleasedLog, first: int) -> None:
        self._log = log
        self.begin(first)

    def begin(self, first: int) -> None:
        """Start again with this line."""
        self.first, self.last, self.sha256 = first, first - 1, hashlib.sha256()

    def advance(self, upto: int) -> None:
        """Add lines up to this one; if some are deleted, start again with the first that is there."""
        try:
            for lines, count in read_pieces(self._log, self.last + 1, min(upto, self._log.last)):
                self.sha256.update(lines)
                self.last += count
        except Gone:
            self.begin(self._log.first)


class Certificates:
    """The folder of certificates, which are numbered from 1 and never changed.

    `index.jsonl` has a short line for each, so that a start does not parse every certificate.
    """

    def __init__(self, state: Path) -> None:
        self._folder, self._ledger = state / "certificates", Ledger(state)
        private_folder(self._folder)
        self._index = self._folder / "index.jsonl"
        self._lines = self._read_index()
        self._add_missing()
        self.verdicts = Counter(line["verdict"] for line in self._lines)

    def _read_index(self) -> list[dict[str, Any]]:
        """Read the index; a damaged one is built again from the certificates."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            lines = [json.loads(line) for line in self._index.read_text("utf-8").splitlines()]
            if all(line["number"] == number for number, line in enumerate(lines, start=1)):
                return lines
        return []

    def _add_missing(self) -> None:
        """Complete the index: a crash can come between a certificate and its line."""
        files = sorted(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))
        if len(files) == len(self._lines):
            return
        known = self._lines[: len(files)]
        self._lines = known + [_line(certificate.read(path)) for path in files[len(known) :]]
        write_private(self._index, "".join(map(_as_json, self._lines)).encode())

    def next_period(self, now: float, stages: list[Stage]) -> Period:
        """Return the period that follows the last certificate, however long ago that was."""
        if not self._lines:
            return Period(1, 1, now, stages)
        newest = self._lines[-1]
        return Period(newest["number"] + 1, newest["last"] + 1, newest["to"], stages)

    def write(self, period: Period, lines: LineDigest, now: float, *, reproducible: bool) -> Certificate:
        """Add a period that ends now to the ledger, then write its certificate."""
        entry = self._ledger_entry(period, lines.sha256.hexdigest())
        ledger = {
            "head": entry["hash"],
            "entry": entry["number"],
            "earlier_releases_of_source": len(self._lines),
        }
        made = _document(period, lines, now, ledger, reproducible=reproducible)
        write_private(self._path(period.number), certificate.to_bytes(made))
        line = _line(made)
        self._lines.append(line)
        with os.fdopen(os.open(self._index, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
            file.write(_as_json(line))
        self.verdicts[line["verdict"]] += 1
        if line["verdict"] == "broken":
            checks = [*made["lineage"], *(check for part in made["methods"] for check in part["checks"])]
            broken = sum(check["verdict"] == "broken" for check in checks)
            _log.critical("a check of the audit failed", extra={"position": period.number, "count": broken})
        return made

    def _ledger_entry(self, period: Period, sha256: str) -> dict[str, Any]:
        """Return the period's ledger entry; a crash can come between the ledger and the certificate."""
        known = {"source": SOURCE, "release": _name(period.number), "sha256": sha256}
        for earlier in reversed(self._ledger.of_source(SOURCE)):
            if known.items() <= earlier.items():
                return earlier
        methods = [{"method": s.method, "settings": s.settings.as_dict()} for s in period.stages]
        return self._ledger.append(known | {"methods": methods})

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}.json"

    def newest(self) -> list[dict[str, Any]]:
        """Return the last certificates, newest first: lines, times, verdicts."""
        return self._lines[: -LISTED - 1 : -1]

    def read(self, number: int) -> bytes:
        """Return a certificate as it was written."""
        try:
            return self._path(number).read_bytes()
        except OSError:
            raise NotFound("there is no certificate with this number") from None


def _name(number: int) -> str:
    return f"stream-{number:06d}"


def _document(
    period: Period, lines: LineDigest, now: float, ledger: dict[str, Any], *, reproducible: bool
) -> Certificate:
    methods, lineage = period.findings()
    layout = formats.Layout.default("jsonl", ("offset", *CANONICAL))
    return certificate.build(
        release={
            "id": _name(period.number),
            "source": SOURCE,
            "sha256": lines.sha256.hexdigest(),
            "layout": layout.as_dict(),
            "stream": {
                "number": period.number,
                "first": lines.first,
                "last": lines.last,
                "from": round(period.begun, 3),
                "to": round(now, 3),
            },
        },
        methods=methods,
        lineage=[*lineage, period.audited(lines.first, lines.last)],
        secret=Secret("seed" if reproducible else "file", b""),
        ledger=ledger,
        own_noise=any(stage.traits.system_noise for stage in period.stages),
    )


def _line(made: Certificate) -> dict[str, Any]:
    stream = made["release"]["stream"]
    return {name: stream[name] for name in ("number", "from", "to", "first", "last")} | {
        "verdict": made["audit"]
    }


def _as_json(line: dict[str, Any]) -> str:
    return json.dumps(line) + "\n"

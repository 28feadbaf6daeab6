"""Certificates of what was released, period by period, on disk and in the ledger; they outlive restarts."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

from querycloak import certificate
from querycloak.certificate import Certificate
from querycloak.engines.pipeline import Stage
from querycloak.errors import NotFound
from querycloak.files import private_folder, sync_folder
from querycloak.keys import write_private
from querycloak.ledger import Ledger
from querycloak.service.monitor.periods import SOURCE, Facts, Period, document, name_of

#: How many the overview lists.
LISTED: Final = 24
_NAME: Final = re.compile(r"[0-9]{6,}\.json")
_log = logging.getLogger("querycloak.service")


class Certificates:
    """The folder of certificates: numbered from 1, never changed."""

    def __init__(self, state: Path) -> None:
        self._folder, self._ledger = state / "certificates", Ledger(state)
        private_folder(self._folder)
        files = sorted(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))
        self._lines = [_line(certificate.read(path)) for path in files]
        self.verdicts = Counter(line["verdict"] for line in self._lines)

    def next_period(self, now: float, stages: list[Stage]) -> Period:
        """Begin the period that follows the last certificate, however long ago that was."""
        if not self._lines:
            return Period(1, 1, now, stages)
        newest = self._lines[-1]
        return Period(newest["number"] + 1, newest["last"] + 1, newest["to"], stages)

    def write(self, period: Period, facts: Facts, *, reproducible: bool) -> Certificate:
        """Enter a period in the ledger, then write its certificate, mode 0600."""
        entry = self._enter(period, facts)
        place = {
            "head": entry["hash"],
            "entry": entry["number"],
            "earlier_releases_of_source": len(self._lines),
        }
        made = document(period, facts, place, reproducible=reproducible)
        self._keep(self._path(period.number), certificate.to_bytes(made))
        line = _line(made)
        self._lines.append(line)
        self.verdicts[line["verdict"]] += 1
        if line["verdict"] == "broken":
            broken = sum(check["verdict"] == "broken" for check in _checks(made))
            _log.critical("a promise is broken", extra={"position": period.number, "count": broken})
        return made

    def _keep(self, path: Path, content: bytes) -> None:
        """Write a file so that it is there as a whole or not at all, even if the power goes."""
        unfinished = path.with_suffix(".unfinished")
        write_private(unfinished, content)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)
        sync_folder(self._folder)

    def _enter(self, period: Period, facts: Facts) -> dict[str, Any]:
        """Enter a period once: a crash may have come between the ledger and the certificate."""
        known = {"source": SOURCE, "release": name_of(period.number), "sha256": facts.sha256}
        for earlier in reversed(self._ledger.of_source(SOURCE)):
            if known.items() <= earlier.items():
                return earlier
        methods = [{"method": s.method, "settings": s.settings.as_dict()} for s in period.stages]
        return self._ledger.append(known | {"methods": methods})

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}.json"

    def newest(self) -> list[dict[str, Any]]:
        """List the last ones, newest first: which lines, when, and the verdict."""
        return self._lines[: -LISTED - 1 : -1]

    def read(self, number: int) -> bytes:
        """Give a certificate as it was written."""
        try:
            return self._path(number).read_bytes()
        except OSError:
            raise NotFound("there is no certificate with this number") from None


def _checks(made: Certificate) -> list[dict[str, str]]:
    return [check for part in made["methods"] for check in part["checks"]] + list(made["lineage"])


def _line(made: Certificate) -> dict[str, Any]:
    stream = made["release"]["stream"]
    return {name: stream[name] for name in ("number", "from", "to", "first", "last")} | {
        "verdict": made["audit"]
    }

"""A period of the released stream: what was audited in it, and the certificate that says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from querycloak import certificate, formats
from querycloak.certificate import Certificate
from querycloak.engines.pipeline import Stage
from querycloak.guarantee import Finding
from querycloak.keys import Secret
from querycloak.log import CANONICAL
from querycloak.service.monitor.auditing import Seen, together

ALL_AUDITED: Final = "every line of the period was audited"
#: What the ledger and certificates call the source.
SOURCE: Final = "service"


@dataclass
class Period:
    """The lines since the last certificate, from offset `first` on, and what audits found in them."""

    number: int
    first: int
    begun: float
    stages: list[Stage]
    seen: list[Seen] = field(default_factory=list)

    def add(self, found: Seen | None) -> None:
        """Note what the audit of a slice found."""
        if found is not None and found.last >= self.first:
            self.seen.append(found)

    def audited(self, first: int, last: int) -> Finding:
        """Say whether audits saw every line; lines of before a restart have no truth any more."""
        missed, expected = 0, first
        for one in sorted(self.seen, key=lambda one: one.first):
            missed += max(0, min(one.first, last + 1) - expected)
            expected = max(expected, one.last + 1)
        missed += max(0, last + 1 - expected)
        if not missed:
            return Finding(ALL_AUDITED, "kept")
        many = f"{missed:,} of {last + 1 - first:,} lines could not be audited"
        return Finding(
            ALL_AUDITED, "not checkable", f"{many}: they left before a restart, or faster than they can be"
        )


@dataclass(frozen=True)
class Facts:
    """What a certificate states beside the audit: which lines, when, and their hash."""

    first: int
    last: int
    begun: float
    ended: float
    sha256: str

    def as_dict(self, number: int) -> dict[str, Any]:
        """Give the part of the certificate that is about the stream."""
        return {
            "number": number,
            "first": self.first,
            "last": self.last,
            "from": round(self.begun, 3),
            "to": round(self.ended, 3),
        }


def document(period: Period, facts: Facts, ledger: dict[str, Any], *, reproducible: bool) -> Certificate:
    """Put the certificate of a period together, in the same form as that of a file."""
    methods, lineage = _found(period)
    layout = formats.Layout.default("jsonl", ("offset", *CANONICAL))
    return certificate.build(
        release={
            "id": name_of(period.number),
            "source": SOURCE,
            "sha256": facts.sha256,
            "layout": layout.as_dict(),
            "stream": facts.as_dict(period.number),
        },
        methods=methods,
        lineage=[*lineage, period.audited(facts.first, facts.last)],
        secret=Secret("seed" if reproducible else "file", b""),
        ledger=ledger,
        own_noise=any(stage.traits.system_noise for stage in period.stages),
    )


def name_of(number: int) -> str:
    """Name a certified period."""
    return f"stream-{number:06d}"


def _found(period: Period) -> tuple[list[dict[str, Any]], list[Finding]]:
    if period.seen:
        return together(period.seen)
    stages = period.stages
    return [certificate.method_part(s.method, s.settings.as_dict(), s.promise(), []) for s in stages], []

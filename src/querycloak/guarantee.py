"""Guarantees in a form that an independent audit can test. Audits share no code with methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

if TYPE_CHECKING:
    from querycloak.audits.evidence import Evidence

Verdict = Literal["kept", "broken", "not checkable", "not applicable"]
#: Why what is about records says nothing about a table.
COUNTS_ONLY: Final = "the release is a table of counts"
#: Why no check applies to a release without a record or a line.
NOTHING_RELEASED: Final = "no record was released"
#: What a check of origins needs.
NEEDS_TRUTH: Final = "needs the original log and the truth file"
#: Why a promise about a whole log cannot be tested on some of it.
ONLY_A_PART: Final = "this is a part of a stream, and all that came before it would be needed"


class NotCheckable(Exception):
    """Raised by an audit that cannot tell from what it was given; the text says why."""


class NotApplicable(Exception):
    """Raised by an audit of something that the release does not claim; the text says why."""


@dataclass(frozen=True)
class Finding:
    """Result of one check. `detail` has counts and row numbers of the release, never content."""

    check: str
    verdict: Verdict
    detail: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the finding as plain values, for a certificate."""
        return {"check": self.check, "verdict": self.verdict, "detail": self.detail}


@dataclass(frozen=True)
class Audit:
    """One check of a guarantee: `run` returns what failed, or an empty text.

    `power` returns which deviations the check detects; a certificate states it if the check passed.
    `on_counts`: the check applies to a table of counts, whose rows are no records. `on_parts`: it holds for
    each part of a stream by itself.
    """

    check: str
    run: Callable[[Evidence], str]
    needs_truth: bool = False
    on_counts: bool = False
    on_parts: bool = False
    power: Callable[[Evidence], str] | None = None

    def __call__(self, evidence: Evidence) -> Finding:
        """Run the check on the evidence that is given."""
        if evidence.table and not self.on_counts:
            return Finding(self.check, "not applicable", COUNTS_ONLY)
        if lacking := self._lacking(evidence):
            return Finding(self.check, "not checkable", lacking)
        try:
            if fault := self.run(evidence):
                return Finding(self.check, "broken", fault)
        except NotCheckable as reason:
            return Finding(self.check, "not checkable", str(reason))
        except NotApplicable as reason:
            return Finding(self.check, "not applicable", str(reason))
        return Finding(self.check, "kept", self.power(evidence) if self.power is not None else "")

    def _lacking(self, evidence: Evidence) -> str:
        """Return what the check needs and was not given."""
        if evidence.part is not None and not self.on_parts:
            return ONLY_A_PART
        known = evidence.original is not None and evidence.truth is not None
        return NEEDS_TRUTH if self.needs_truth and not known else ""


@dataclass(frozen=True)
class Sentence:
    """One sentence of a guarantee; its checks are audits of the method and those of the cells of columns."""

    text: str
    audits: tuple[Audit, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guarantee:
    """What a method ensures, what it does not, and the audits that test it.

    `sentences` names the checks of each sentence of the statement; without it, all audits test the whole.
    `labels_waiting` computes from a part of a stream what the audit of the next needs (`Part.present`).
    """

    statement: str
    does_not_protect_against: tuple[str, ...]
    audits: tuple[Audit, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    labels_waiting: Callable[[Evidence], pl.DataFrame] | None = field(default=None, compare=False)
    sentences: tuple[Sentence, ...] = ()

    def __post_init__(self) -> None:
        if not self.sentences:
            object.__setattr__(self, "sentences", (Sentence(self.statement, self.audits),))

    @classmethod
    def of(cls, *sentences: Sentence, limits: tuple[str, ...], **rest: Any) -> Guarantee:
        """Return a guarantee that consists of these sentences."""
        audits = tuple(dict.fromkeys(audit for one in sentences for audit in one.audits))
        statement = "; ".join(one.text for one in sentences)
        return cls(statement, limits, audits, sentences=sentences, **rest)

    def audit(self, evidence: Evidence) -> list[Finding]:
        """Run every audit."""
        return [audit(evidence) for audit in self.audits]


def verdict_of(findings: list[Finding]) -> Verdict:
    """Return the verdict on all findings together: one check that was not made keeps others from passing."""
    seen = {finding.verdict for finding in findings}
    order: tuple[Verdict, ...] = ("broken", "not checkable", "kept")
    return next((verdict for verdict in order if verdict in seen), "not applicable")


def rows_text(rows: list[int], total: int) -> str:
    """Name the first rows of a release at fault: `3 rows of the release, the first: 4, 8, 15`."""
    first = ", ".join(str(row) for row in rows[:5])
    return f"{total:,} row{'s' if total != 1 else ''} of the release, the first: {first}"

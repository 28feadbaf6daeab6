"""Decisions about candidates: which may be proposed, which keeps most, and whether stated bounds hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from querycloak.attacks.finding import Finding
from querycloak.compare.result import CandidateResult, Comparison
from querycloak.knowledge import Game

Verdict = Literal["holds", "broken", "no bound stated", "not applicable", "open by design"]

#: Why a game does not apply to a release with such labels.
NO_QUESTION: Final = {
    "one person each": "a label is one person's: it says already which records belong together",
    "shared": "a label is a whole group's, so no record is one person's",
    "none": "records carry no label",
    "table": "a table of counts has no records",
    "empty": "nothing was released",
}
#: Games that labels of one person each leave open by design.
BY_DESIGN: Final = frozenset({Game.ATTRIBUTION, Game.LINKAGE})


def eligible(comparison: Comparison, limit: float, attacker: str) -> list[CandidateResult]:
    """Return the candidates whose linked share is at most `limit`, at the upper end of its interval."""
    return [
        one
        for one in comparison.succeeded
        if (found := one.linked(attacker)) and found.high <= limit and never_proposed(one) is None
    ]


def ranked(comparison: Comparison, limit: float, use: str, attacker: str) -> list[CandidateResult]:
    """Return the eligible candidates that keep something of a use, best first; of equals, least linked."""
    valued = [
        (-share.value, found.success, place, one)
        for place, one in enumerate(eligible(comparison, limit, attacker))
        if (share := one.kept(use)) and share.value > 0 and (found := one.linked(attacker))
    ]
    return [one for *_, one in sorted(valued, key=lambda entry: entry[:3])]


def never_proposed(candidate: CandidateResult) -> str | None:
    """Return why a candidate must not be proposed whatever its numbers are; None if it may be."""
    if any(promise.audit == "broken" for promise in candidate.promises):
        return "its audit found a promise broken"
    if candidate.comparison_only:
        return "by its own words it is there for comparison, not to be published"
    return None


def worst_audit(candidate: CandidateResult) -> str:
    """Return the worst verdict among the audits of a candidate's promises."""
    audits = [one.audit for one in candidate.promises]
    return next((word for word in ("broken", "not checkable", "not applicable") if word in audits), "kept")


@dataclass(frozen=True)
class BoundVerdict:
    """The verdict of one game on one candidate, with the attack that decides it.

    `strongest` is the strongest attack of the game, whether a bound is stated for it or not. `why` is the
    reason where no attack decides.
    """

    verdict: Verdict
    attack: str | None = None
    strongest: str | None = None
    why: str = ""


def judge_bound(candidate: CandidateResult, game: str) -> BoundVerdict:
    """Return whether the bounds that are stated for a game hold against the measured attacks."""
    played = {label: one for label, one in candidate.findings.items() if one.game == game}
    measured = {label: one for label, one in played.items() if one.success is not None}
    if candidate.labels == "one person each" and game in BY_DESIGN:
        return BoundVerdict("open by design", why=NO_QUESTION["one person each"])
    if not measured:
        return BoundVerdict("not applicable", why=_why_not(candidate.labels, played))
    strongest = max(measured, key=lambda label: measured[label].high or 0.0)
    bounded = {label: one for label, one in measured.items() if one.bound is not None}
    if not bounded:
        return BoundVerdict("no bound stated", strongest, strongest)
    broken = [label for label, one in bounded.items() if one.holds is False]
    tested = max(broken or bounded, key=lambda label: excess(bounded[label]))
    if strongest in bounded:
        strongest = tested  # a stronger attack under a looser bound adds nothing
    return BoundVerdict("broken" if broken else "holds", tested, strongest)


def excess(finding: Finding) -> float:
    """Return by how much the success exceeds the bound; negative below it."""
    assert finding.success is not None
    assert finding.bound is not None
    return finding.success - finding.bound


def _why_not(labels: str, played: Mapping[str, Finding]) -> str:
    if not played:
        return "no attack of this game was run"
    reasons = dict.fromkeys(str(one.not_applicable) for one in played.values())
    return NO_QUESTION.get(labels) or "; ".join(reasons)

"""Run attacks: give each its view, have its guesses scored, and compare the score with the stated bounds."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
import polars as pl

from querycloak.attacks import scoring
from querycloak.attacks.auxiliary import AuxiliaryData, CandidateRecords, KnownSearches, Request
from querycloak.attacks.base import (
    Attack,
    AttackerView,
    Attribution,
    ConceptGuesses,
    Identification,
    PairGuesses,
    RecordClaims,
    TraceClusters,
)
from querycloak.attacks.case import Case, Release
from querycloak.attacks.controls import Copy
from querycloak.attacks.finding import Finding, Findings, Unit
from querycloak.errors import MissingExtra, NotApplicable, UsageError
from querycloak.guarantee import COUNTS_ONLY
from querycloak.knowledge import Game, Knowledge
from querycloak.log import Log
from querycloak.registry import ATTACKS
from querycloak.settings import assign

Progress = Callable[[str, int, int | None], None]
#: Takes the name of an attribution attack and the log that it rebuilt.
Rebuilt = Callable[[str, pl.DataFrame], None]

_UNITS: dict[str, Unit] = {Game.LINKAGE: "pair", Game.IDENTIFICATION: "user", Game.INFERENCE: "concept"}


def attack(
    release: pl.DataFrame,
    certificate: Mapping[str, Any],
    original: pl.DataFrame,
    truth: pl.DataFrame,
    names: Sequence[str] | None = None,
    settings: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    *,
    seed: int | None = None,
    rebuilt: Rebuilt | None = None,
    protect: Callable[[Log], Release] | None = None,
) -> Findings:
    """Run the named attacks on a release, or all fast ones; return a finding for each.

    `settings` are named `NAME` or `ATTACK.NAME`; `seed` goes to every attack that draws. `rebuilt` receives,
    for each attribution, the release with guessed users in place of labels.
    """
    attacks = prepare(names, settings or {}, seed)
    return run_on(attacks, release, certificate, original, truth, progress, rebuilt=rebuilt, protect=protect)


def run_on(
    attacks: Sequence[Attack],
    release: pl.DataFrame,
    certificate: Mapping[str, Any],
    original: pl.DataFrame,
    truth: pl.DataFrame,
    progress: Progress | None = None,
    *,
    rebuilt: Rebuilt | None = None,
    protect: Callable[[Log], Release] | None = None,
) -> Findings:
    """Run prepared attacks on a release; no attack applies to a table of counts."""
    if certificate.get("release", {}).get("table"):
        return Findings(_not_applicable(one, COUNTS_ONLY) for one in attacks)
    return run(Case.of(release, certificate, original, truth, protect), attacks, progress, rebuilt)


def run(
    case: Case,
    attacks: Sequence[Attack],
    progress: Progress | None = None,
    rebuilt: Rebuilt | None = None,
) -> Findings:
    """Run attacks on one case, in order. An attack can occur more than once, with other settings."""
    findings = Findings()
    for done, one in enumerate(attacks):
        if progress:
            progress(one.name, done, len(attacks))
        findings.append(_try(one, case, rebuilt))
    findings.untested = _untested(case.certificate, findings)
    return findings


def _untested(certificate: Mapping[str, Any], findings: Findings) -> list[str]:
    """Return the stated bounds on games that attacks were to play, where none of these attacks applied."""
    view = AttackerView(pl.DataFrame(), certificate)
    games = {one.game for one in findings} - {one.game for one in findings if not one.not_applicable}
    stated = [(name, one) for name, own in view.stages if own for one in own.bounds]
    return [
        f"{name} ({one.game})"
        for name, one in stated
        if one.game in games and view.bound(one.game, one.knowledge, one.known_terms) == (name, one)
    ]


def prepare(
    names: Sequence[str] | None, settings: Mapping[str, str], seed: int | None = None
) -> list[Attack]:
    """Return the named attacks with their settings. Raise UsageError for an unknown name or setting."""
    chosen = list(names) if names else [name for name in ATTACKS.names() if ATTACKS.get(name).fast]
    if len(set(chosen)) < len(chosen):
        raise UsageError("an attack is named twice", hint="name each attack once")
    kinds: dict[str, type[Attack]] = {name: ATTACKS.get(name) for name in chosen}
    given = _seeds(kinds, seed) | dict(settings)
    assigned = assign(given, {name: kind.Settings for name, kind in kinds.items()}, "attack")
    return [kind(assigned[name]) for name, kind in kinds.items()]


def all_requests(attacks: Sequence[Attack]) -> list[Request]:
    """Return the requests of attacks, in every form of each."""
    forms = [one.against(fakes=fakes) for one in attacks for fakes in (False, True)]
    return [request for one in forms for request in one.requests()]


def _seeds(kinds: Mapping[str, type[Attack]], seed: int | None) -> dict[str, str]:
    drawing = [name for name, kind in kinds.items() if any(f.name == "seed" for f in fields(kind.Settings))]
    return {f"{name}.seed": str(seed) for name in drawing} if seed is not None else {}


def _try(one: Attack, case: Case, rebuilt: Rebuilt | None) -> Finding:
    """Run one attack; the finding of one that does not apply has the reason instead of figures."""
    one = one.against(fakes=case.truth.fake is not None)
    try:
        _check_columns(one, case.release)
        return _run(one, case, rebuilt)
    except NotApplicable as reason:
        return _not_applicable(one, str(reason))
    except MissingExtra as reason:
        return _not_applicable(one, reason.message)


def _not_applicable(one: Attack, reason: str) -> Finding:
    return Finding(one.name, one.game, _UNITS.get(one.game, "record"), not_applicable=reason)


def _check_columns(one: Attack, release: pl.DataFrame) -> None:
    if not release.height:
        raise NotApplicable("the release is empty")
    for name in sorted(one.columns):
        if name not in release.columns or release[name].null_count() == release.height:
            raise NotApplicable(f"the release has no {name}")


def _run(one: Attack, case: Case, rebuilt: Rebuilt | None) -> Finding:
    known = {request.name: request.draw(case) for request in one.requests() if request.name}
    view = AttackerView(
        case.release.clone(),
        copy.deepcopy(dict(case.certificate)),
        {name: part.frame for name, part in known.items()},
    )
    if type(one) is Copy:  # the control alone, no subclass and no plug-in
        one.peek(case.truth.label)
    start = time.perf_counter()
    guesses = one.guess(view)
    seconds = time.perf_counter() - start
    if rebuilt and isinstance(guesses, Attribution):
        rebuilt(one.name, case.release.with_columns(user=guesses.guess.cast(pl.String)))
    bound = bound_of(one, view, guesses)
    score = _score(one, guesses, case, bound, list(known.values()))
    return _finding(one, case, score, bound, seconds)


def _score(
    one: Attack, guesses: Any, case: Case, bound: Bound | None, known: Sequence[AuxiliaryData]
) -> scoring.Score:
    people = {name: user for part in known for name, user in part.people.items()}
    if isinstance(guesses, Attribution):
        return scoring.attribution(guesses, case.truth, bound.value if bound else None)
    if isinstance(guesses, PairGuesses):
        return scoring.pairs(guesses, case.truth, cast(int, getattr(one.settings, "seed", 0)))
    if isinstance(guesses, Identification):
        return scoring.identification(guesses, case.truth, people)
    if isinstance(guesses, ConceptGuesses):
        return scoring.concepts(guesses, case.truth, case.original_queries())
    if isinstance(guesses, TraceClusters):
        from querycloak.attacks import scoring_covers

        traces = {label for part in known for label in part.traces}
        return scoring_covers.score(guesses, case.release, case.truth, traces)
    if isinstance(guesses, RecordClaims):
        from querycloak.attacks import scoring_claims

        request = next(some for some in one.requests() if isinstance(some, CandidateRecords))
        return scoring_claims.score(guesses, case, people, request)
    raise UsageError(f"the attack `{one.name}` gave no guesses that can be scored")


def _finding(one: Attack, case: Case, score: scoring.Score, bound: Bound | None, seconds: float) -> Finding:
    return Finding(
        attack=one.name,
        game=one.game,
        unit=score.unit,
        success=score.share.value,
        low=score.share.low,
        high=score.share.high,
        bound=bound.value if bound else None,
        n=score.share.n,
        seconds=round(seconds, 3),
        median_user=score.median_user,
        worst_decile_user=score.worst_decile_user,
        details=score.details | (bound.details() if bound else {}),
        knowledge=one.knowledge(),
        labels=case.labels,
        **score.privacy,
    )


@dataclass(frozen=True)
class Bound:
    """The share that the success of an attack should not exceed, and its origin."""

    value: float
    origin: str
    claimed: bool = False

    def details(self) -> dict[str, Any]:
        """Return the origin of the bound; a bound that only a paper states is marked as claimed."""
        claimed = {"claimed_bound": self.value} if self.claimed else {}
        return {"bound_from": self.origin} | claimed


def bound_of(attack: Attack, view: AttackerView, guesses: Any = None) -> Bound | None:
    """Return the bound for an attack, from the traits of the release's methods.

    A bound holds for attackers with no more knowledge than it names: an attacker who knows volumes or
    histories can do better. Guesses of concepts carry their own ceilings.
    """
    if isinstance(guesses, ConceptGuesses):
        known = guesses.ceiling is not None and guesses.ceiling.size
        name = next((name for name, own in view.stages if own and own.channel), "")
        return Bound(float(np.mean(guesses.ceiling)), f"promised by {name}") if known else None  # type: ignore[arg-type]
    found = view.bound(Game(attack.game), attack.knowledge(), _known_terms(attack))
    if found is None:
        return None
    name, bound = found
    claimed = bool(bound.claimed_by)
    return Bound(bound.value, f"claimed by {bound.claimed_by}" if claimed else f"promised by {name}", claimed)


def _known_terms(attack: Attack) -> float:
    """Return the number of terms of a target that the attacker knows; infinity for whole texts."""
    texts = [one for one in attack.requests() if Knowledge.TEXTS in one.knowledge()]
    of_terms = [one.searches for one in texts if isinstance(one, KnownSearches) and one.unit == "term"]
    return math.inf if len(of_terms) < len(texts) else sum(of_terms)

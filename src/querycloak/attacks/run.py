"""Run attacks: give each its view, have its guesses scored, and compare the score with the stated bounds."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
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
    attacks: Sequence[str] | Sequence[Attack] | None = None,
    settings: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    *,
    seed: int | None = None,
    rebuilt: Rebuilt | None = None,
    protect: Callable[[Log], Release] | None = None,
) -> Findings:
    """Run attacks on a release in order, or all fast ones; return a finding for each.

    `attacks` are names, with `settings` named `NAME` or `ATTACK.NAME` and a `seed` for every attack that
    draws; or what `prepare` returned. `rebuilt` receives, for each attribution, the release with guessed
    users in place of labels. No attack applies to a table of counts.
    """
    ready = [one for one in attacks or () if isinstance(one, Attack)]
    ready = ready or prepare(cast("Sequence[str] | None", attacks), settings or {}, seed)
    if certificate.get("release", {}).get("table"):
        return Findings(_not_applicable(one, COUNTS_ONLY) for one in ready)
    case, findings = Case.of(release, certificate, original, truth, protect), Findings()
    for done, one in enumerate(ready):
        if progress:
            progress(one.name, done, len(ready))
        findings.append(_try(one, case, rebuilt))
    findings.untested = _untested(certificate, findings)
    return findings


def _untested(certificate: Mapping[str, Any], findings: Findings) -> list[str]:
    """Return the stated bounds on games that attacks were to play, where none was held against a bound."""
    view = AttackerView(pl.DataFrame(), certificate)
    games = {one.game for one in findings} - {one.game for one in findings if one.holds is not None}
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
    drawing = [name for name, kind in kinds.items() if any(f.name == "seed" for f in fields(kind.Settings))]
    seeds = {f"{name}.seed": str(seed) for name in drawing} if seed is not None else {}
    assigned = assign(seeds | dict(settings), {name: kind.Settings for name, kind in kinds.items()}, "attack")
    return [kind(assigned[name]) for name, kind in kinds.items()]


def all_requests(attacks: Sequence[Attack]) -> list[Request]:
    """Return the requests of attacks, in every form of each."""
    forms = [one.against(fakes=fakes) for one in attacks for fakes in (False, True)]
    return [request for one in forms for request in one.requests()]


def _try(one: Attack, case: Case, rebuilt: Rebuilt | None) -> Finding:
    """Run one attack; the finding of one that does not apply has the reason instead of figures."""
    one = one.against(fakes=case.truth.fake is not None)
    try:
        if not case.release.height:
            raise NotApplicable("the release is empty")
        for name in sorted(one.columns):
            if name not in case.release.columns or case.release[name].null_count() == case.release.height:
                raise NotApplicable(f"the release has no {name}")
        return _run(one, case, rebuilt)
    except NotApplicable as reason:
        return _not_applicable(one, str(reason))
    except MissingExtra as reason:
        return _not_applicable(one, reason.message)


def _not_applicable(one: Attack, reason: str) -> Finding:
    return Finding(one.name, one.game, _UNITS.get(one.game, "record"), not_applicable=reason)


def _run(one: Attack, case: Case, rebuilt: Rebuilt | None) -> Finding:
    known = {request.name: request.draw(case) for request in one.requests()}
    frames = {name: part.frame for name, part in known.items()}
    view = AttackerView(case.release.clone(), copy.deepcopy(dict(case.certificate)), frames)
    if type(one) is Copy:  # the control alone, no subclass and no plug-in
        one.peek(case.truth.label)
    start = time.perf_counter()
    guesses = one.guess(view)
    seconds = time.perf_counter() - start
    if rebuilt and isinstance(guesses, Attribution):
        rebuilt(one.name, case.release.with_columns(user=guesses.guess.cast(pl.String)))
    bound, origin = _bound_of(one, view, guesses)
    score = _score(one, guesses, case, bound, list(known.values()))
    return Finding(
        attack=one.name,
        game=one.game,
        unit=score.unit,
        success=score.share.value,
        low=score.share.low,
        high=score.share.high,
        bound=bound,
        n=score.share.n,
        seconds=round(seconds, 3),
        median_user=score.median_user,
        worst_decile_user=score.worst_decile_user,
        details=score.details | origin,
        knowledge=one.knowledge(),
        labels=case.labels,
        **score.privacy,
    )


def _score(
    one: Attack, guesses: Any, case: Case, bound: float | None, known: Sequence[AuxiliaryData]
) -> scoring.Score:
    people = {name: user for part in known for name, user in part.people.items()}
    if isinstance(guesses, Attribution):
        return scoring.attribution(guesses, case.truth, bound)
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


def _bound_of(attack: Attack, view: AttackerView, guesses: Any) -> tuple[float | None, dict[str, Any]]:
    """Return the share that the success of an attack should not exceed, and its origin as details.

    It comes from the traits of the release's methods, and holds for attackers with no more knowledge than it
    names. A bound that only a paper states is marked as claimed. Guesses of concepts have their own ceilings.
    """
    if isinstance(guesses, ConceptGuesses):
        if guesses.ceiling is None or not guesses.ceiling.size:
            return None, {}
        name = next((name for name, own in view.stages if own and own.channel), "")
        return float(np.mean(guesses.ceiling)), {"bound_from": f"promised by {name}"}
    found = view.bound(Game(attack.game), attack.knowledge(), _known_terms(attack))
    if found is None:
        return None, {}
    name, bound = found
    if bound.claimed_by:
        return bound.value, {"bound_from": f"claimed by {bound.claimed_by}", "claimed_bound": bound.value}
    return bound.value, {"bound_from": f"promised by {name}"}


def _known_terms(attack: Attack) -> float:
    """Return the number of terms of a target that the attacker knows; infinity for whole texts."""
    texts = [one for one in attack.requests() if Knowledge.TEXTS in one.knowledge()]
    of_terms = [one.searches for one in texts if isinstance(one, KnownSearches) and one.unit == "term"]
    return math.inf if len(of_terms) < len(texts) else sum(of_terms)

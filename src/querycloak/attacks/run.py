"""Runs attacks: shows each only what it says it knows, then has its guesses scored."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

import polars as pl

from querycloak.attacks import scoring
from querycloak.attacks.bounds import Bound, bound_of
from querycloak.attacks.case import Case
from querycloak.attacks.controls import Copy
from querycloak.attacks.finding import Finding, Findings, NotApplicable, Unit
from querycloak.attacks.knowledge import KNOWLEDGE, Known
from querycloak.attacks.protocol import (
    Attack,
    AttackerView,
    Attribution,
    Identification,
    Linkage,
    Meanings,
    Reattachment,
    Separation,
)
from querycloak.errors import MissingExtra, UsageError
from querycloak.guarantees import COUNTS_ONLY
from querycloak.registry import ATTACKS
from querycloak.settings import assign

Progress = Callable[[str, int, int | None], None]
#: Takes an attribution attack's name and the log that it rebuilt.
Rebuilt = Callable[[str, pl.DataFrame], None]

_UNITS: dict[str, Unit] = {"linkage": "pair", "identification": "user"}


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
) -> Findings:
    """Attack a release with the named attacks, or with all fast ones; each gives a finding.

    `settings` go as `NAME` or `ATTACK.NAME`; `seed` goes to every attack that draws. `rebuilt` gets, for
    each attribution, the release with guessed users in place of labels.
    """
    attacks = prepare(names, settings or {}, seed)
    if certificate.get("release", {}).get("table"):
        return Findings(_not_applicable(one, COUNTS_ONLY) for one in attacks)
    case = Case.of(release, certificate, original, truth)
    findings = Findings()
    for done, one in enumerate(attacks):
        if progress:
            progress(one.name, done, len(attacks))
        findings.append(_try(one, case, rebuilt))
    return findings


def prepare(
    names: Sequence[str] | None, settings: Mapping[str, str], seed: int | None = None
) -> list[Attack]:
    """Find the attacks and give each its settings."""
    chosen = list(names) if names else [name for name in ATTACKS.names() if ATTACKS.get(name).fast]
    if len(set(chosen)) < len(chosen):
        raise UsageError("an attack is named twice", hint="name each attack once")
    kinds: dict[str, type[Attack]] = {name: ATTACKS.get(name) for name in chosen}
    given = _seeds(kinds, seed) | dict(settings)
    assigned = assign(given, {name: kind.Settings for name, kind in kinds.items()}, "attack")
    return [kind(assigned[name]) for name, kind in kinds.items()]


def _seeds(kinds: Mapping[str, type[Attack]], seed: int | None) -> dict[str, str]:
    drawing = [name for name, kind in kinds.items() if any(f.name == "seed" for f in fields(kind.Settings))]
    return {f"{name}.seed": str(seed) for name in drawing} if seed is not None else {}


def _try(one: Attack, case: Case, rebuilt: Rebuilt | None) -> Finding:
    """Run one attack; one that cannot work says why instead of a number."""
    one = one.against(fakes=case.answers.fake is not None)
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
    for name in sorted(one.needs):
        if name not in release.columns or release[name].null_count() == release.height:
            raise NotApplicable(f"the release has no {name}")


def _run(one: Attack, case: Case, rebuilt: Rebuilt | None) -> Finding:
    known = {name: _known(name, one, case) for name in sorted(one.knows)}
    view = AttackerView(
        case.release.clone(),
        copy.deepcopy(dict(case.certificate)),
        {name: part.frame for name, part in known.items()},
    )
    if type(one) is Copy:  # no subclass and no plugin gets in by this door
        one.peek(case.answers.label)
    start = time.perf_counter()
    guesses = one.guess(view)
    seconds = time.perf_counter() - start
    if rebuilt and isinstance(guesses, Attribution):
        rebuilt(one.name, case.release.with_columns(user=guesses.guess.cast(pl.String)))
    bound = bound_of(one, view, guesses)
    people = {name: user for part in known.values() for name, user in part.people.items()}
    score = _score(one, guesses, case, bound, people)
    return _finding(one, score, bound, seconds)


def _known(name: str, one: Attack, case: Case) -> Known:
    if name not in KNOWLEDGE:
        raise UsageError(
            f"the attack `{one.name}` asks for `{name}`, which no attack is given",
            hint=f"an attack may know {', '.join(KNOWLEDGE)}",
        )
    return KNOWLEDGE[name](case, one.settings)


def _score(
    one: Attack, guesses: Any, case: Case, bound: Bound | None, people: Mapping[str, str]
) -> scoring.Score:
    answers = case.answers
    if isinstance(guesses, Attribution):
        return scoring.attribution(guesses, answers, bound.value if bound else None)
    if isinstance(guesses, Linkage):
        return scoring.linkage(guesses, answers, cast(int, getattr(one.settings, "seed", 0)))
    if isinstance(guesses, Identification):
        return scoring.identification(guesses, answers, people)
    if isinstance(guesses, Meanings):
        return scoring.meanings(guesses, answers, case.asked())
    if isinstance(guesses, Separation):
        from querycloak.attacks import separation

        return separation.score(guesses, case.release, answers, people)
    if isinstance(guesses, Reattachment):
        from querycloak.attacks import reattachment

        return reattachment.score(guesses, case, people, one.settings)
    raise UsageError(f"the attack `{one.name}` gave no guesses that can be scored")


def _finding(one: Attack, score: scoring.Score, bound: Bound | None, seconds: float) -> Finding:
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
        **score.privacy,
    )

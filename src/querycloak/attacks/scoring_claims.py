"""Scores claims about the further records of targets: balanced accuracy over own and others' records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from querycloak.attacks.auxiliary import CandidateRecords, already_known
from querycloak.attacks.base import Claim, RecordClaims
from querycloak.attacks.case import Case
from querycloak.attacks.scoring import Score, area_under_curve, precision_at
from querycloak.attacks.scoring_covers import (
    TargetScore,
    errors,
    hour_weights,
    over_targets,
    profiles,
    semantic_privacy,
    spread,
    topic_weights,
)
from querycloak.attacks.searches import Searches
from querycloak.errors import NotApplicable, UsageError
from querycloak.log import Flags, FloatArray


@dataclass(frozen=True)
class _Records:
    """All candidates: a row for each search, who wrote it (or for whom it was made up), and what it says."""

    frame: pl.DataFrame
    topics: FloatArray
    hours: FloatArray

    @classmethod
    def of(cls, case: Case, rows: pl.DataFrame) -> _Records:
        whose = case.release.with_columns(_author=case.truth.user, _origin=case.origins)
        searches = Searches.of(whose.join(rows, on="released_row", how="semi", maintain_order="left"))
        frame = searches.frame[searches.first_row]
        content = frame.drop("released_row", "user", "_author", "_origin", strict=False).hash_rows(0)
        frame = frame.with_columns(_content=content)
        return cls(frame, topic_weights(searches), hour_weights(searches))


@dataclass(frozen=True, kw_only=True)
class _Person(TargetScore):
    area_new: float
    precision: float
    rate: float
    known: int
    own: int


def score(guesses: RecordClaims, case: Case, people: Mapping[str, str], request: CandidateRecords) -> Score:
    """Score the claims about each target; a person counts as much as any other.

    The success is the share of records told right, with the target's and others' weighted equally: 0.5 by
    chance. Searches that the attacker knows of the target are left out.
    """
    circle = request.circle(case)
    records = _Records.of(case, circle.candidates(request.candidates))
    _check(guesses, records, people)
    known = {rows["name"][0]: rows for rows in circle.known(circle.targets).partition_by("name")}
    found = [_person(one, records, people[one.target], known[one.target]) for one in guesses.claims]
    told = [one for one in found if not np.isnan(one.success)]
    if not told:
        raise NotApplicable("nothing more of any target was released, or nothing of anybody else")
    details = guesses.details | _details(told, case) | {"left_out": len(found) - len(told)}
    structure = errors([one.errors for one in told])
    privacy = {"structure": structure, "semantic": semantic_privacy(told), "relative": None}
    return over_targets(told, details, privacy)


def _check(guesses: RecordClaims, records: _Records, people: Mapping[str, str]) -> None:
    """Raise UsageError for claims about other records or users, of whom the attacker knows the truth."""
    rows = records.frame["released_row"].cast(pl.Int64).to_numpy()
    if not np.array_equal(guesses.row, rows):
        raise UsageError("the attack made claims about records that are not the candidates")
    names = [one.target for one in guesses.claims]
    if len(set(names)) < len(names) or not set(names) <= people.keys():
        raise UsageError("the attack made claims about people that it was not to attack, or twice about one")
    if any(one.score.size != rows.size or one.claimed.size != rows.size for one in guesses.claims):
        raise UsageError("the attack did not make a claim about each candidate")


def _person(one: Claim, records: _Records, user: str, known: pl.DataFrame) -> _Person:
    frame = records.frame
    own = (frame["_author"] == user).to_numpy()
    kept = ~already_known(known, frame, frame["_origin"]) & ~_copies(frame, own)
    new = kept & ~frame["query"].is_in(known["query"].implode()).fill_null(value=False).to_numpy()
    count = int(own[kept].sum())
    told, truly = one.claimed[kept], own[kept]
    return _Person(
        errors=(_share(~told[truly]), _share(told[~truly])),
        area=area_under_curve(one.score[kept], truly),
        area_new=area_under_curve(one.score[new], own[new]),
        precision=precision_at(one.score[kept], truly, count),
        rate=_share(truly),
        topics=_distance(records.topics[kept], told, truly),
        hours=_distance(records.hours[kept], told, truly),
        known=len(Searches.of(known)),
        own=count,
        size=truly.size,
    )


def _copies(frame: pl.DataFrame, own: Flags) -> Flags:
    """Return a mask of others' made-up records that equal one of the target's but for the label."""
    same = frame["_content"].is_in(frame["_content"].filter(pl.Series(own, dtype=pl.Boolean)).implode())
    return (same & frame["_origin"].is_null()).to_numpy() & ~own


def _distance(weights: FloatArray, told: Flags, truly: Flags) -> Sequence[float]:
    """Return the distance of the claimed records' profile from the target's own; 1 if none is claimed."""
    return profiles(weights, told.astype(np.int64), truly)[1:] or [1.0][: int(weights[truly].any())]


def _share(flags: Flags) -> float:
    return float(flags.mean()) if flags.size else float("nan")


def _details(told: Sequence[_Person], case: Case) -> dict[str, Any]:
    return {
        "targets": len(told),
        "people": case.original["user"].n_unique(),
        "known_searches": float(np.median([one.known for one in told])),
        "records_to_find": float(np.median([one.own for one in told])),
        "among": float(np.median([one.size for one in told])),
        "chance": 0.5,
        "area_under_curve": spread([one.area for one in told])["mean"],
        "area_under_curve_new_texts": spread([one.area_new for one in told])["mean"],
        "precision": spread([one.precision for one in told])["mean"],
        "precision_by_chance": spread([one.rate for one in told])["mean"],
        "made_up": bool(case.origins.null_count()),
    }

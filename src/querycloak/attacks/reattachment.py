"""Scores which released records an attack called a target's: told right, half of hers and half of others'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.attacks import interests
from querycloak.attacks.acquaintance import Circle, told_by
from querycloak.attacks.case import Case
from querycloak.attacks.finding import NotApplicable
from querycloak.attacks.intervals import Share
from querycloak.attacks.learned import privacy
from querycloak.attacks.learned.searches import Searches
from querycloak.attacks.protocol import Claim, Reattachment
from querycloak.attacks.scoring import Score, area_under_curve, precision_at
from querycloak.attacks.separation import errors, profile
from querycloak.errors import UsageError

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Records:
    """All candidates: a row for each search, who wrote it (or for whom it was made up), and what it says."""

    frame: pl.DataFrame
    topics: FloatArray
    hours: FloatArray

    @classmethod
    def of(cls, case: Case, rows: pl.DataFrame) -> _Records:
        whose = case.release.with_columns(_author=case.answers.user, _origin=case.origins)
        searches = Searches.of(whose.join(rows, on="released_row", how="semi", maintain_order="left"))
        frame = searches.frame[searches.first_row]
        content = frame.drop("released_row", "user", "_author", "_origin", strict=False).hash_rows(0)
        frame = frame.with_columns(_content=content)
        return cls(frame, interests.topics(searches), interests.hours(searches))


@dataclass(frozen=True)
class _Person:
    """The numbers of one target; nan where there is nothing to tell."""

    errors: tuple[float, float]
    area: float
    area_new: float
    precision: float
    rate: float
    topics: Sequence[float]
    hours: Sequence[float]
    known: int
    hers: int
    others: int

    @property
    def success(self) -> float:
        """The share of records told right, half of them hers, half others'."""
        return 1.0 - sum(self.errors) / 2


def score(guesses: Reattachment, case: Case, people: Mapping[str, str], settings: Any) -> Score:
    """Score the claims about each target; a person counts as much as any other.

    Of records of hers and of others, half of either kind, the share told right: 0.5 where nothing tells them.
    What she is known to have asked is in neither.
    """
    circle = Circle.of(case, settings)
    records = _Records.of(case, circle.candidates(settings.candidates))
    _check(guesses, records, people)
    known = {rows["name"][0]: rows for rows in circle.known(circle.targets).partition_by("name")}
    found = [_person(one, records, people[one.target], known[one.target]) for one in guesses.claims]
    told = [one for one in found if not np.isnan(one.success)]
    if not told:
        raise NotApplicable("nothing more of any target was released, or nothing of anybody else")
    success = np.array([one.success for one in told])
    share = Share(
        float(success.mean()), *privacy.mean_interval(success), sum(one.hers + one.others for one in told)
    )
    middle, worst = np.quantile(success, [0.5, 0.9]).tolist()
    details = guesses.details | _details(told, case) | {"left_out": len(found) - len(told)}
    return Score("pair", share, middle, worst, details, _privacy(told))


def _check(guesses: Reattachment, records: _Records, people: Mapping[str, str]) -> None:
    """Refuse claims about other records or people: of some others the attacker knows the answers."""
    rows = records.frame["released_row"].cast(pl.Int64).to_numpy()
    if not np.array_equal(guesses.row, rows):
        raise UsageError("the attack made claims about records that are not the candidates")
    names = [one.target for one in guesses.claims]
    if len(set(names)) < len(names) or not set(names) <= people.keys():
        raise UsageError("the attack made claims about people that it was not to attack, or twice about one")
    if any(one.score.size != rows.size or one.hers.size != rows.size for one in guesses.claims):
        raise UsageError("the attack did not make a claim about each candidate")


def _person(one: Claim, records: _Records, user: str, known: pl.DataFrame) -> _Person:
    frame = records.frame
    hers = (frame["_author"] == user).to_numpy()
    kept = ~told_by(known, frame, frame["_origin"]) & ~_copies(frame, hers)
    new = kept & ~frame["query"].is_in(known["query"].implode()).fill_null(value=False).to_numpy()
    count = int(hers[kept].sum())
    told, truly = one.hers[kept], hers[kept]
    return _Person(
        errors=(_share(~told[truly]), _share(told[~truly])),
        area=area_under_curve(one.score[kept], truly),
        area_new=area_under_curve(one.score[new], hers[new]),
        precision=precision_at(one.score[kept], truly, count),
        rate=_share(truly),
        topics=_distance(records.topics[kept], told, truly),
        hours=_distance(records.hours[kept], told, truly),
        known=len(Searches.of(known)),
        hers=count,
        others=truly.size - count,
    )


def _copies(frame: pl.DataFrame, hers: Flags) -> Flags:
    """Mark others' made-up records that are, but for the label, one of hers: her whole group has them."""
    same = frame["_content"].is_in(frame["_content"].filter(pl.Series(hers, dtype=pl.Boolean)).implode())
    return (same & frame["_origin"].is_null()).to_numpy() & ~hers


def _distance(weights: FloatArray, told: Flags, truly: Flags) -> Sequence[float]:
    """Compare the profile of what was called hers with that of what is; nothing called hers tells nothing."""
    return privacy.profiles(weights, told.astype(np.int64), truly)[1:] or [1.0][: int(weights[truly].any())]


def _share(flags: Flags) -> float:
    return float(flags.mean()) if flags.size else float("nan")


def _details(told: Sequence[_Person], case: Case) -> dict[str, Any]:
    return {
        "targets": len(told),
        "people": case.original["user"].n_unique(),
        "known_searches": float(np.median([one.known for one in told])),
        "records_to_find": float(np.median([one.hers for one in told])),
        "among": float(np.median([one.hers + one.others for one in told])),
        "chance": 0.5,
        "area_under_curve": privacy.spread([one.area for one in told])["mean"],
        "area_under_curve_new_texts": privacy.spread([one.area_new for one in told])["mean"],
        "precision": privacy.spread([one.precision for one in told])["mean"],
        "precision_by_chance": privacy.spread([one.rate for one in told])["mean"],
        "made_up": bool(case.origins.null_count()),
    }


def _privacy(told: Sequence[_Person]) -> dict[str, Any]:
    """Give what is left of privacy; the one part that counts is what was called hers."""
    semantic = profile([one.topics for one in told])
    semantic["temporal"] = profile([one.hours for one in told])
    return {"structure": errors([one.errors for one in told]), "semantic": semantic, "relative": None}

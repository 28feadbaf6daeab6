"""Scores how an attack told people's searches from their fakes: success over pairs, and the privacy left."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.attacks import interests
from querycloak.attacks.finding import NotApplicable
from querycloak.attacks.intervals import Share
from querycloak.attacks.learned import linkage, privacy
from querycloak.attacks.learned.searches import Searches
from querycloak.attacks.protocol import Separated, Separation
from querycloak.attacks.scoring import Answers, Score, area_under_curve, places
from querycloak.errors import UsageError

FloatArray = npt.NDArray[np.float64]

_ERRORS: Final = ("false_negatives", "false_positives")


@dataclass(frozen=True)
class _Person:
    """The numbers of one person; nan where there is nothing to tell."""

    structure: tuple[float, float]
    relative: tuple[float, float]
    topics: Sequence[float]
    hours: Sequence[float]
    named: float
    named_topics: float
    area: float
    pairs: int
    parts: int

    @property
    def success(self) -> float:
        """The share of pairs told right, half of them of two real searches, half of a real one and a fake."""
        return 1.0 - sum(self.structure) / 2


def score(guesses: Separation, release: pl.DataFrame, answers: Answers, targets: Collection[str]) -> Score:
    """Score the clusters of each person under attack; a person counts as much as any other.

    Of pairs of two real searches and of a real one and a fake, half of either kind, the share told right: a
    coin has 0.5, and so has any clustering where nothing tells fakes from real searches.
    """
    if answers.fake is None:
        raise NotApplicable("the truth does not say which searches are fake")
    _check(guesses, release, answers, targets)
    people = [_person(one, guesses, release, answers) for one in guesses.people]
    told = [one for one in people if not np.isnan(one.success)]
    if not told:
        raise NotApplicable("nobody under attack has two real searches and a fake")
    success = np.array([one.success for one in told])
    low, high = privacy.mean_interval(success)
    share = Share(float(success.mean()), low, high, sum(one.pairs for one in told))
    middle, worst = np.quantile(success, [0.5, 0.9]).tolist()
    details = guesses.details | {
        "chance": 0.5,
        "area_under_curve": privacy.spread([one.area for one in told])["mean"],
        "left_out": len(people) - len(told),
    }
    return Score("pair", share, middle, worst, details, _privacy(told, guesses.again))


def _check(guesses: Separation, release: pl.DataFrame, answers: Answers, targets: Collection[str]) -> None:
    """Refuse what is not about the people under attack: of others the attacker knows the answers."""
    named = [set(release["user"][places(one.row, answers.released_row)]) for one in guesses.people]
    if any(len(users) != 1 or not users <= set(targets) for users in named):
        raise UsageError("the attack separated searches of people that it was not to attack")
    if len(set.union(set(), *named)) < len(named):
        raise UsageError("the attack separated one person's searches twice")


def _privacy(people: Sequence[_Person], again: bool) -> dict[str, Any]:
    semantic = profile([one.topics for one in people])
    semantic["temporal"] = profile([one.hours for one in people])
    if any(not np.isnan(one.named) for one in people):
        semantic["named"] = privacy.spread([one.named_topics for one in people])
    structure = {"parts": max(one.parts for one in people)} | errors([one.structure for one in people])
    if any(not np.isnan(one.named) for one in people):
        structure["named"] = privacy.spread([one.named for one in people])
    relative = {"parts": linkage.MANY} | errors([one.relative for one in people]) if again else None
    return {"structure": structure, "semantic": semantic, "relative": relative}


def errors(found: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Describe people's false negatives and false positives, and the mean of both."""
    spreads = {name: privacy.spread([pair[at] for pair in found]) for at, name in enumerate(_ERRORS)}
    return {"error": privacy.spread([sum(pair) / 2 for pair in found])} | spreads


def profile(found: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Describe the distances of people's clusters: the least of each person, and the mean."""
    known = [distances for distances in found if len(distances)]
    means = [float(np.mean(distances)) for distances in known]
    return {"worst": privacy.spread([min(distances) for distances in known]), "mean": privacy.spread(means)}


def _person(one: Separated, guesses: Separation, release: pl.DataFrame, answers: Answers) -> _Person:
    assert answers.fake is not None
    at = places(one.row, answers.released_row)
    real = ~answers.fake[at]
    hers = _searches(release, one.row)
    distances = privacy.profiles(interests.topics(hers), one.cluster, real)
    unknown = ~np.isin(one.row, one.told)
    return _Person(
        structure=privacy.structure(one.cluster, real),
        relative=_relative(one, real, guesses.seed) if guesses.again else (np.nan, np.nan),
        topics=distances,
        hours=privacy.profiles(interests.hours(hers), one.cluster, real),
        named=np.nan if one.hers is None else _named(one.cluster[unknown] == one.hers, real[unknown]),
        named_topics=distances[one.hers] if one.hers is not None and distances else np.nan,
        area=_area(one, real),
        pairs=int(real.sum() * (real.sum() - 1) // 2 + real.sum() * (~real).sum()),
        parts=int(one.cluster.max(initial=-1)) + 1,
    )


def _relative(one: Separated, real: npt.NDArray[np.bool_], seed: int) -> tuple[float, float]:
    """Sort her real searches alone, by the same scores, and compare."""
    hers = np.flatnonzero(real)
    scores = linkage.among(one.score, real.size, hers)
    return privacy.relative(linkage.cut(scores, hers.size, linkage.MANY, seed), one.finer[real])


def _named(called_hers: npt.NDArray[np.bool_], real: npt.NDArray[np.bool_]) -> float:
    """Give the error of the cluster called hers, over as many real searches as fakes; those told aside."""
    if not real.any() or real.all():
        return np.nan
    return float(1.0 - called_hers[real].mean() + called_hers[~real].mean()) / 2


def _area(one: Separated, real: npt.NDArray[np.bool_]) -> float:
    low, high = np.triu_indices(real.size, 1)
    one_real = real[low] | real[high]
    return area_under_curve(one.score[one_real].astype(np.float64), (real[low] & real[high])[one_real])


def _searches(release: pl.DataFrame, row: npt.NDArray[np.int64]) -> Searches:
    """Find the rows of these searches again; each begins with one of the rows given."""
    first = pl.DataFrame({"released_row": row})
    keys = [name for name in ("user", "query", "time") if name in release.columns]
    begins = release.join(first, on="released_row", how="semi").select(keys)
    hers = release.join(begins, on=keys, how="semi", nulls_equal=True, maintain_order="left")
    found = Searches.of(hers)
    order = hers["released_row"].to_numpy()[found.first_row]
    return _in_order(found, np.searchsorted(order, row))


def _in_order(found: Searches, order: npt.NDArray[np.int64]) -> Searches:
    place = np.full(len(found), -1, np.int64)
    place[order] = np.arange(order.size)
    kept = place[found.of_row] >= 0
    frame = found.frame.filter(pl.Series(kept))
    of_row = place[found.of_row][kept]
    first = np.full(order.size, len(of_row), np.int64)
    np.minimum.at(first, of_row, np.arange(len(of_row)))
    return Searches(frame, of_row, first)

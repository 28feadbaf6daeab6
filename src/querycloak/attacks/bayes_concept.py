"""`bayes-concept`: the likeliest meaning of what a differentially private replacement stands for."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak import accounting
from querycloak import settings as declared
from querycloak.attacks.finding import NotApplicable
from querycloak.attacks.protocol import Attack, AttackerView, Meanings
from querycloak.dictionary import distinct
from querycloak.errors import QueryCloakError
from querycloak.kernels.concept_guesses import Prior, best_guesses
from querycloak.settings import setting
from querycloak.topics.concepts.field import Field
from querycloak.topics.concepts.mapper import Mapped, Mapper
from querycloak.topics.concepts.sharing import draws_of
from querycloak.topics.concepts.space import LARGEST_EPSILON

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class BayesConcept(Attack):
    """Guess what each replaced phrase meant, by how common concepts are and how likely to become this one.

    It knows the mechanism and, with `prior=log`, how often each query was asked in the whole log, but not
    by whom. It guesses from one draw alone. Such a guess can be right with probability
    π·e^ε′ / (π·e^ε′ + 1 − π) at most, π being its prior (within the domain, which shows) and ε′ what one draw
    spends. Whoever knows that a person asked one thing r times has r draws of it, and r·ε′.
    """

    name = "bayes-concept"
    game = "attribution"
    knows = frozenset({"frequencies"})
    needs = frozenset({"user", "query"})

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `bayes-concept`."""

        prior: str = setting(
            "log",
            kind=str,
            choices=("log", "uniform"),
            help="how common concepts are: as in the whole `log`, or all the same (`uniform`)",
        )

    settings: Settings
    _promised = True
    method: ClassVar[str] = "dp-semantic"

    def guess(self, view: AttackerView) -> Meanings:
        """Read the release as its method would, and find the likeliest original of each concept."""
        stage = _stage(view)
        self._promised = stage.rebuild == "none"
        field = Field(stage)
        try:
            shown = Mapper(field.concepts).read(distinct(view.release["query"])[0])  # as it was written
            space = field.space
        except QueryCloakError as reason:
            raise NotApplicable(reason.message) from None
        row, turn, concept, draws = _phrases(view.release, shown, space.candidates.domain, _group(stage))
        if not row.size:
            raise NotApplicable("no phrase of the release is known")
        levels, level = np.unique(draws, return_inverse=True)
        epsilon = np.array([_share(stage, int(m)) for m in levels])
        if self.settings.prior == "uniform":
            size = int(space.candidates.members.size)
            return self._meanings(field, row, turn, concept, np.full(row.size, 1 / size), epsilon[level])
        prior, chance = _prior(view.knowledge["frequencies"], field)
        if not prior.concept.size:
            raise NotApplicable("no query of the log is known")
        found = best_guesses(concept, level, epsilon / 2, prior, space.candidates, space.shares())
        guessed = np.where(found >= 0, prior.concept[found], -1)
        pi = np.where(found >= 0, chance[found], 0.0)
        return self._meanings(field, row, turn, guessed, pi, epsilon[level])

    def _meanings(
        self, field: Field, row: Longs, turn: Longs, guess: Longs, pi: Floats, epsilon: Floats
    ) -> Meanings:
        ceiling = _ceiling(pi, epsilon)
        details = {
            "guesses_from": "one draw alone",
            "prior": self.settings.prior,
            "prior_of_guesses": float(pi.mean()),
            "ceiling": float(ceiling.mean()),
            "epsilon_per_draw_median": float(np.median(epsilon)),
            "epsilon_per_draw_largest": float(epsilon.max()),
        }

        def meaning(texts: pl.Series) -> tuple[Longs, Longs]:
            mapped = field.mapper.read(texts)
            return _inside(mapped, field.space.candidates.domain)

        # only if concepts are as common as the prior says is the ceiling about this log
        known = ceiling if self.settings.prior == "log" and self._promised else None
        return Meanings(row, turn, guess, meaning, known, details)


def _stage(view: AttackerView) -> Any:
    """Find the settings of the method, as the certificate states them."""
    for part in view.certificate.get("methods", []):
        if part["method"] == BayesConcept.method:
            return SimpleNamespace(**part["settings"])
    raise NotApplicable("the release was not made by `dp-semantic`")


def _ceiling(pi: Floats, epsilon: Floats) -> Floats:
    grown = pi * np.exp(epsilon)
    return np.asarray(grown / (grown + 1 - pi))


def _share(stage: Any, draws: int) -> float:
    """Say what one draw spends in a history of so many."""
    if stage.per == "query":
        return min(float(stage.epsilon), LARGEST_EPSILON)
    most = draws if stage.max_queries == "own" else int(stage.max_queries)
    share = accounting.per_draw(stage.epsilon, max(most, 1), stage.composition, stage.delta)
    return min(share, LARGEST_EPSILON)


def _group(stage: Any) -> int:
    """Say how many phrases share a draw."""
    return int(stage.group) if stage.prior != "none" else 1


def _inside(mapped: Mapped, domain: npt.NDArray[np.int32]) -> tuple[Longs, Longs]:
    """Leave out concepts that the release's domain does not have."""
    concept = mapped.concept
    kept = domain[concept] >= 0
    return concept[kept], np.concatenate([[0], np.cumsum(kept)])[mapped.start].astype(np.int64)


def _phrases(
    release: pl.DataFrame, mapped: Mapped, domain: npt.NDArray[np.int32], group: int
) -> tuple[Longs, Longs, Longs, Longs]:
    """List the phrases of all rows: row, turn, concept, and how many draws their label seems to have.

    Clicked rows repeat their search, so what one label shows twice within the hour counts once: too few
    draws would make a draw seem to spend more, and the ceiling higher, never lower.
    """
    number = distinct(release["query"])[1]
    concept, start = _inside(mapped, domain)
    sizes = np.diff(start)[number]
    row = np.repeat(np.arange(number.size), sizes)
    turn = np.arange(row.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shown = concept[start[number[row]] + turn]
    names = [name for name in ("user", "query", "time") if name in release.columns]
    first = release.select(pl.struct(names).is_first_distinct()).to_series().to_numpy()
    user = distinct(release["user"])[1][row]
    counted = pl.DataFrame({"user": user, "domain": domain[shown]}).filter(pl.Series(first[row]))
    parts = counted.group_by("user", "domain").len()
    draws = np.zeros(int(user.max(initial=-1)) + 1, np.int64)
    np.add.at(draws, parts["user"].to_numpy(), draws_of(parts["len"].to_numpy().astype(np.int64), group))
    return row, turn, shown, draws[user]


def _prior(frequencies: pl.DataFrame, field: Field) -> tuple[Prior, Floats]:
    """Turn frequencies of queries into those of concepts, the commonest first; also within their domain."""
    concept, start = _inside(field.mapper.read(frequencies["query"]), field.space.candidates.domain)
    weight = np.repeat(frequencies["count"].to_numpy().astype(np.float64), np.diff(start))
    total = np.bincount(concept, weight)
    order = np.argsort(-total, kind="stable")
    order = order[total[order] > 0]
    home = field.space.candidates.domain[order]
    within = np.bincount(home, total[order])[home]  # the domain shows, so who guesses starts from there
    return Prior(order.astype(np.int64), np.log(total[order] / total.sum())), total[order] / within

"""`bayes-concept`: guesses the original of each randomised concept by Bayes' rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.attacks.auxiliary import Frequencies, Request
from querycloak.attacks.base import Attack, AttackerView, ConceptGuesses
from querycloak.dictionary import distinct
from querycloak.errors import NotApplicable, QueryCloakError
from querycloak.kernels.arrays import ranks_in_groups
from querycloak.log import FloatArray, IntArray
from querycloak.protector import Channel
from querycloak.settings import setting


class BayesConcept(Attack):
    """Guess what each replaced phrase meant, by how common concepts are and how likely to become this one.

    It knows the mechanism and, with `prior=log`, how often each query was asked in the whole log, but not
    by whom. It guesses from one draw alone. Such a guess can be right with probability
    π·e^ε′ / (π·e^ε′ + 1 − π) at most, π being its prior (within the domain, which shows) and ε′ what one draw
    spends. An attacker who knows that a person asked one thing r times has r draws of it, and r·ε′.
    """

    name = "bayes-concept"
    game = "inference"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `bayes-concept`."""

        prior: str = setting(
            "log",
            choices=("log", "uniform"),
            help="how common concepts are: as in the whole `log`, or all the same (`uniform`)",
        )

    settings: Settings

    def requests(self) -> tuple[Request, ...]:
        """Return a request for the frequencies of queries."""
        return (Frequencies(),)

    def guess(self, view: AttackerView) -> ConceptGuesses:
        """Read the release as its method would, and find the likeliest original of each concept."""
        channel = _channel(view)
        try:
            phrases = _phrases(view.release, channel)
        except QueryCloakError as reason:
            raise NotApplicable(reason.message) from None
        if not phrases.row.size:
            raise NotApplicable("no phrase of the release is known")
        levels, level = np.unique(phrases.draws, return_inverse=True)
        epsilon = np.array([channel.epsilon_per_draw(int(draws)) for draws in levels])[level]
        if self.settings.prior == "uniform":
            even = np.full(phrases.row.size, 1 / channel.concepts)
            return self._guesses(channel, phrases, phrases.concept, even, epsilon)
        concept, log_prior, within = _prior(view.auxiliary[Frequencies.name], channel)
        if not concept.size:
            raise NotApplicable("no query of the log is known")
        found = channel.likeliest(phrases.concept, epsilon, concept, log_prior)
        guessed = np.where(found >= 0, concept[found], -1)
        return self._guesses(channel, phrases, guessed, np.where(found >= 0, within[found], 0.0), epsilon)

    def _guesses(
        self, channel: Channel, phrases: _Phrases, guess: IntArray, pi: FloatArray, epsilon: FloatArray
    ) -> ConceptGuesses:
        ceiling = _ceiling(pi, epsilon)
        details = {
            "guesses_from": "one draw alone",
            "prior": self.settings.prior,
            "prior_of_guesses": float(pi.mean()),
            "ceiling": float(ceiling.mean()),
            "epsilon_per_draw_median": float(np.median(epsilon)),
            "epsilon_per_draw_largest": float(epsilon.max()),
        }
        # The ceiling is about this log only if concepts are as frequent as the prior has them.
        known = ceiling if self.settings.prior == "log" and channel.limits_guesses else None
        return ConceptGuesses(phrases.row, phrases.turn, guess, channel.read, known, details)


def _channel(view: AttackerView) -> Channel:
    found = [traits.channel for _, traits in view.stages if traits and traits.channel is not None]
    if not found:
        raise NotApplicable("no method of the release publishes how it replaces concepts")
    return found[0]


def _ceiling(pi: FloatArray, epsilon: FloatArray) -> FloatArray:
    grown = pi * np.exp(epsilon)
    return np.asarray(grown / (grown + 1 - pi))


class _Phrases(NamedTuple):
    """Phrases of a release: row, place in the query, concept, and the draws of its label."""

    row: IntArray
    turn: IntArray
    concept: IntArray
    draws: IntArray


def _phrases(release: pl.DataFrame, channel: Channel) -> _Phrases:
    """Return the phrases of all rows.

    Clicked rows repeat their search, so what one label has twice within the hour counts once: too few draws
    make the ε of a draw, and so the ceiling, higher, never lower.
    """
    texts, number = distinct(release["query"])
    concept, start = channel.read_released(texts)
    sizes = np.diff(start)[number]
    row = np.repeat(np.arange(number.size), sizes)
    turn = ranks_in_groups(sizes)
    shown = concept[start[number[row]] + turn]
    names = [name for name in ("user", "query", "time") if name in release.columns]
    first = release.select(pl.struct(names).is_first_distinct()).to_series().to_numpy()
    user = distinct(release["user"])[1][row]
    counted = pl.DataFrame({"user": user, "domain": channel.domain_of(shown)}).filter(pl.Series(first[row]))
    parts = counted.group_by("user", "domain").len()
    draws = np.zeros(int(user.max(initial=-1)) + 1, np.int64)
    np.add.at(draws, parts["user"].to_numpy(), channel.draws(parts["len"].to_numpy().astype(np.int64)))
    return _Phrases(row, turn, shown, draws[user])


def _prior(frequencies: pl.DataFrame, channel: Channel) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return concepts by falling frequency, the logarithm of their prior, and the prior in the domain."""
    concept, start = channel.read(frequencies["query"])
    weight = np.repeat(frequencies["count"].to_numpy().astype(np.float64), np.diff(start))
    total = np.bincount(concept, weight)
    order = np.argsort(-total, kind="stable")
    order = order[total[order] > 0].astype(np.int64)
    home = channel.domain_of(order)
    within = np.bincount(home, total[order])[home]  # the release shows the domain, so a guess starts there
    return order, np.log(total[order] / total.sum()), total[order] / within

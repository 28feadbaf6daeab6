"""Protects synthetic histories by the mechanisms of paper 002, and measures what profiles lose (eq. 9-11)."""

from __future__ import annotations

import hashlib
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.p002.workload import MOST, Histories, Longs, World
from querycloak import accounting
from querycloak.methods.dp_semantic import draws as grouping
from querycloak.methods.dp_semantic.draws import drawn as replaced
from querycloak.methods.shared.readings import ConceptSlots
from querycloak.text.concept_space import ConceptSpace

DELTA = 1e-6

Floats = npt.NDArray[np.float64]


def divergences(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Return the Jensen-Shannon divergence (base 2) of each row of counts with the same row of another.

    Where the first has nothing it is not a number: there was no profile. Where only the second has
    nothing it is 1: the profile is gone.
    """
    first, second = _shares(p), _shares(q)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = (first + second) / 2
        parts = np.where(first > 0, first * np.log2(first / middle), 0.0)
        parts += np.where(second > 0, second * np.log2(second / middle), 0.0)
    found = np.clip(parts.sum(axis=-1) / 2, 0, 1)
    found[(second == 0).all(axis=-1)] = 1.0
    found[(first == 0).all(axis=-1)] = np.nan
    return np.asarray(found)


def _shares(counts: npt.ArrayLike) -> Floats:
    held = np.asarray(counts, np.float64)
    total = held.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(held, total, out=np.zeros_like(held), where=total > 0))


def profiles(user: npt.NDArray[np.integer], topic: npt.NDArray[np.integer], users: int, topics: int) -> Longs:
    """Count the queries of each user and topic."""
    counts = np.bincount(user.astype(np.int64) * topics + topic, minlength=users * topics)
    return counts.reshape(users, topics).astype(np.int64)


def losses(before: npt.ArrayLike, after: list[npt.ArrayLike], outside: bool = True) -> dict[str, Any]:
    """Return the utility loss, its chance error, and the same for profiles without their last topic.

    `after` holds one table of counts for each run. The chance error is that of the draws alone: all
    methods have the same users. Without `outside` there is no such last topic to compare.
    """
    first, found = np.asarray(before), dict[str, Any]()
    for name, width in (("loss", None), ("listed", -1)) if outside else (("loss", -1),):
        each = np.stack([divergences(first[:, :width], np.asarray(one)[:, :width]) for one in after])
        each = each[:, ~np.isnan(each[0])]
        found[name] = float(each.mean())
        spread = each.var(axis=0, ddof=1).mean() if len(each) > 1 else 0.0
        found[f"{name}_error"] = float(np.sqrt(spread / each.size))
        found[f"{name}_runs"] = [float(one) for one in each.mean(axis=1)]
    gone = [np.asarray(one)[:, :-1].sum(axis=1) == 0 for one in after]
    return found | {"emptied": float(np.mean(gone))}


def key_of(name: str) -> bytes:
    """Return a key for one measurement."""
    return hashlib.blake2b(f"paper 002, made up: {name}".encode(), digest_size=32).digest()


@cache
def share(epsilon: float, draws: int, per: str) -> float:
    """Return the ε of one of so many draws on a history."""
    if per == "query":
        return epsilon
    if per == "zcdp":
        return accounting.per_draw(epsilon, draws, "zcdp", DELTA)
    return accounting.per_draw(epsilon, draws)


def drawn(
    world: World, histories: Histories, setting: str, criterion: str, per: str, epsilon: float, runs: int,
    name: str,
) -> dict[str, Any]:  # fmt: skip
    """Replace every query by the exponential mechanism, and compare profiles."""
    space, profile = world.space(setting, criterion), world.settings[setting].profile
    way, _, size = per.partition(" ")
    user, concept, times = histories.user, histories.concept, np.ones(histories.user.size, np.int64)
    if size:
        user, concept, times = _grouped(histories, int(size), space)
    owner, middle = np.repeat(user, times), np.repeat(concept, times)
    draws = np.bincount(user)[user]
    levels, level = np.unique(draws, return_inverse=True)
    each = np.array([share(epsilon, int(m), way) for m in levels])[level]
    made = [np.repeat(concept, times)] * runs
    if way != "middles":
        every = ConceptSlots(
            np.arange(user.size * runs), np.zeros(user.size * runs, np.int64), np.tile(concept, runs)
        )
        field: Any = SimpleNamespace(space=space)
        new = replaced(field, every, every.record, np.tile(each, runs), key_of(name))
        made = [np.repeat(one, times) for one in np.split(new, runs)]
    width, users = len(profile.names), histories.sizes.size
    before = profiles(histories.user, profile.of[histories.concept], users, width)
    after = [profiles(owner, profile.of[one], users, width) for one in made]
    return losses(before, after) | {  # type: ignore[arg-type]
        "stay": float(np.mean([profile.of[one] == profile.of[middle] for one in made])),
        "same": float(np.mean([one == middle for one in made])),
        "outside": float(np.mean([profile.of[one] == width - 1 for one in made])),
        "per_draw": float(np.median(np.repeat(each, times))),
    }


_middles: dict[tuple[int, int, int], tuple[Longs, Longs, Longs]] = {}


def _grouped(histories: Histories, size: int, space: ConceptSpace) -> tuple[Longs, Longs, Longs]:
    """Group each history's concepts of a domain by likeness; return owner, middle and size of each group."""
    key = id(histories), size, id(space)
    if key not in _middles:
        part = histories.user * space.domains + space.candidates.domain[histories.concept]
        order = np.argsort(part, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(part[order])) + 1)
        found = [grouping.centroids(histories.concept[own], size, space) for own in parts]
        first = histories.user[[own[0] for own in parts]]
        _middles[key] = (
            np.repeat(first, [middle.size for middle, _ in found]),
            np.concatenate([middle for middle, _ in found]),
            np.concatenate([sizes for _, sizes in found]),
        )
    return _middles[key]


def blank(world: World, histories: Histories, setting: str) -> dict[str, Any]:
    """Compare with what is known without any draw: every concept of a query's domain as probable as any."""
    space, profile = world.space(setting, "none"), world.settings[setting].profile
    width, users = len(profile.names), histories.sizes.size
    members = space.candidates.members
    within = profiles(space.candidates.domain[members], profile.of[members], space.domains, width)
    known = profiles(histories.user, space.candidates.domain[histories.concept], users, space.domains)
    before = profiles(histories.user, profile.of[histories.concept], users, width)
    return losses(before, [known @ _shares(within)])


def histogram(
    world: World, histories: Histories, setting: str, variant: str, per: str, epsilon: float, runs: int,
    name: str,
) -> dict[str, Any]:  # fmt: skip
    """Count each user's queries by concept, add discrete Laplace noise to all counts, and compare profiles.

    `hbdp` is the paper's: as sensitivity the most queries of any user, negative counts cut at 0. `hbdp
    ours` has twice a maximum that is set beforehand. `hbdp topics` adds up before it cuts. `hbdp equal`
    spends what `per=query` spends, m ε, and takes the number m of queries as known, as that does: the
    sensitivity is 2 m, so the scale is 2/ε. `hbdp equal max` spends it with the paper's sensitivity.
    """
    own = world.settings[setting]
    users, width = histories.sizes.size, len(own.profile.names)
    counted = np.isin(histories.concept, own.bins)
    user, concept = histories.user[counted], histories.concept[counted]
    sensitivity = {"hbdp ours": 2 * MOST, "hbdp equal": 2}.get(variant, int(histories.sizes.max()))
    chance = np.random.default_rng(list(key_of(name)))
    budget = epsilon * (histories.sizes if variant == "hbdp equal max" else np.ones(users))
    rate = np.exp(-budget / sensitivity)
    sizes = np.bincount(own.profile.of[own.bins], minlength=width)
    add = _noisy if variant != "hbdp topics" else _noisy_topics
    after = [add(user, concept, own.profile.of, sizes, rate, chance) for _ in range(runs)]
    before = profiles(user, own.profile.of[concept], users, width)
    return losses(before, after, outside=bool(sizes[-1])) | {  # type: ignore[arg-type]
        "bins": int(own.bins.size),
        "scale": float(sensitivity / np.median(budget)),
        "added": float(np.mean([one.sum(axis=1) for one in after]) / np.mean(histories.sizes)),
    }


def _noisy(
    user: Longs, concept: Longs, topic: npt.NDArray[np.int32], sizes: Longs, rate: Floats, chance: Any
) -> Longs:
    """Add noise to every count, cut at 0, and add up by topic.

    Counts that are not 0 get noise one by one. Of n that are 0, those that end up positive are
    binomial(n, a/(1+a)), and each of them is geometric: together, 1 each and a negative binomial.
    """
    users, width = rate.size, sizes.size
    held, times = np.unique(user * topic.size + concept, return_counts=True)
    who, of = held // topic.size, topic[held % topic.size]
    noise = chance.geometric(1 - rate[who]) - chance.geometric(1 - rate[who])
    total = np.bincount(who * width + of, np.maximum(times + noise, 0), users * width).astype(np.int64)
    zeros = sizes - profiles(who, of, users, width)
    each = np.broadcast_to(rate[:, None], zeros.shape)
    positive = chance.binomial(zeros, each / (1 + each))
    some = positive > 0
    rest = positive.copy()
    rest[some] += chance.negative_binomial(positive[some], 1 - each[some])
    return np.asarray(total.reshape(users, width) + rest)


def _noisy_topics(
    user: Longs, concept: Longs, topic: npt.NDArray[np.int32], sizes: Longs, rate: Floats, chance: Any
) -> Longs:
    """Add noise to every count, add up by topic, and only then cut at 0."""
    counts = profiles(user, topic[concept], rate.size, sizes.size)
    some = np.flatnonzero(sizes)
    each, bins = (
        np.broadcast_to(rate[:, None], counts.shape)[:, some],
        np.broadcast_to(sizes, counts.shape)[:, some],
    )
    counts[:, some] += chance.negative_binomial(bins, 1 - each) - chance.negative_binomial(bins, 1 - each)
    return np.maximum(counts, 0)

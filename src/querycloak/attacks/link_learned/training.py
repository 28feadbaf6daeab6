"""Learns from people whose fakes are known whether one person wrote two searches: boosted regression trees.

An example is a pair of searches: 1 if both are real, 0 if one is real and the other was added by the
obfuscation. The attacker has these from people other than those under attack, by running the obfuscation on
their searches or by watching it. Each function learns from other people, or at least from other pairs.

Reference: paper 004, sections 4.1.1 to 4.1.3 and 5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from querycloak.attacks.link_learned import forest
from querycloak.errors import MissingExtra
from querycloak.kernels.threads import each
from querycloak.log import Flags, FloatArray, IntArray

Relations = npt.NDArray[np.float32]
#: Gives the relations of pairs of events, a row for each pair.
Relate = Callable[[IntArray, IntArray], Relations]

#: How many people a function learns from, and how many pairs of each kind of one person, at most.
PEOPLE: Final = 10
PAIRS: Final = 2000
#: Small trees: all pairs of a person go through every one of them.
_TREES: Final = 50
_SHAPE: Final = {
    "objective": "regression",
    "num_leaves": 15,
    "learning_rate": 0.1,
    "bagging_fraction": 0.5,
    "bagging_freq": 1,
    # One thread for each function, and several functions at once: no thread waits for another.
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}


@dataclass(frozen=True)
class TrainingTrace:
    """Which of one person's events are known to be real and which fake, as places among all events."""

    real: IntArray
    fake: IntArray


@dataclass(frozen=True)
class LinkageFunction:
    """A linkage function: how likely it is, from their relations, that one person wrote both searches."""

    trees: Any

    def __call__(self, relations: Relations) -> npt.NDArray[np.float32]:
        """Score pairs from 0 to 1."""
        if not len(relations):
            return np.empty(0, np.float32)
        return np.asarray(np.clip(self._forest(relations), 0.0, 1.0), np.float32)

    @cached_property
    def _forest(self) -> forest.Forest:
        """The same trees as tables: equal scores, sooner."""
        return forest.of(self.trees.dump_model()["tree_info"], self.trees.num_feature())

    def gains(self) -> FloatArray:
        """Return the gain of each relation in the trees."""
        return np.asarray(self.trees.feature_importance("gain"), np.float64)


def lessons(user: IntArray, fake: Flags, first: int) -> list[TrainingTrace]:
    """Take the beginning of each person's trace, until so many real searches have passed.

    Events come in the order of time. Who has no two real events and a fake in it teaches nothing.
    """
    found = []
    order = np.argsort(user, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(user[order])) + 1):
        begun = np.cumsum(~fake[places])
        early = places[begun - (~fake[places]) < first]
        lesson = TrainingTrace(early[~fake[early]], early[fake[early]])
        if lesson.real.size > 1 and lesson.fake.size:
            found.append(lesson)
    return found


def pairs(
    chosen: Sequence[TrainingTrace], most: int, draws: np.random.Generator, fakes: bool = False
) -> tuple[IntArray, IntArray, Flags]:
    """Draw as many pairs of two real events as of a real one and a fake, of each person.

    With `fakes`, as many pairs of two fakes too, which count as linked; then mixed ones are twice as many.
    The earlier event always comes first: otherwise a relation that is not symmetric would tell the kinds.
    """
    drawn = [part for lesson in chosen for part in _of_one(lesson, most, draws, fakes)]
    a, b = (np.concatenate([part[side] for part in drawn]) for side in (0, 1))
    same = np.repeat([part[2] for part in drawn], [part[0].size for part in drawn])
    return np.minimum(a, b), np.maximum(a, b), same


def learn(
    relate: Relate, known: Sequence[TrainingTrace], functions: int, seed: int, fakes: bool = False
) -> list[LinkageFunction]:
    """Learn so many functions, each from some of the people, drawn for it."""
    given = [_examples(relate, known, np.random.default_rng([seed, n]), fakes) for n in range(functions)]
    return grow(given, seed)


def grow(examples: Sequence[tuple[Relations, Flags]], seed: int) -> list[LinkageFunction]:
    """Grow a function from each set of examples, several at once."""
    return each(lambda n: fit(*examples[n], seed + n), range(len(examples)))


def fit(relations: Relations, same: Flags, seed: int = 0) -> LinkageFunction:
    """Grow the trees of one function."""
    try:
        import lightgbm
    except ImportError:
        raise MissingExtra("learn", "the attack `link-learned`") from None
    # With few examples, leaves of the usual 20 would leave nothing to tell apart.
    chosen = _SHAPE | {"seed": seed % 2**31, "min_data_in_leaf": max(1, min(20, same.size // 20))}
    data = lightgbm.Dataset(relations, same.astype(np.float32), params=chosen)
    return LinkageFunction(lightgbm.train(chosen, data, _TREES))


def importances(functions: Sequence[LinkageFunction], names: Sequence[str]) -> dict[str, float]:
    """Rank relations by how much they helped over all functions; the first has 100."""
    gains = np.sum([function.gains() for function in functions], axis=0)
    scaled = 100.0 * gains / gains.max() if gains.any() else gains
    ranked = sorted(zip(names, scaled.tolist(), strict=True), key=lambda pair: -pair[1])
    return {name: round(value, 2) for name, value in ranked}


def _examples(
    relate: Relate, known: Sequence[TrainingTrace], draws: np.random.Generator, fakes: bool
) -> tuple[Relations, Flags]:
    chosen = [known[n] for n in draws.permutation(len(known))[:PEOPLE]]
    first, second, same = pairs(chosen, PAIRS, draws, fakes)
    return relate(first, second), same


def _of_one(
    lesson: TrainingTrace, most: int, draws: np.random.Generator, fakes: bool
) -> Iterator[tuple[IntArray, IntArray, bool]]:
    """Draw the pairs of one person, a kind at a time."""
    n, m = lesson.real.size, lesson.fake.size
    size = min(most, n * (n - 1) // 2, n * m)
    fakes = fakes and m > 1
    if fakes:
        size = min(size, m * (m - 1) // 2, n * m // 2)
        first, second = _two(m, draws, size)
        yield lesson.fake[first], lesson.fake[second], True
    first, second = _two(n, draws, size)
    yield lesson.real[first], lesson.real[second], True
    first, second = one_of_each(n, m, draws, size * (1 + fakes))
    yield lesson.real[first], lesson.fake[second], False


def _two(n: int, draws: np.random.Generator, size: int) -> tuple[IntArray, IntArray]:
    """Draw different pairs of two among n."""
    code = draws.choice(n * (n - 1) // 2, size, replace=False)
    begins = np.cumsum(np.arange(n)[::-1])  # pairs whose lower place is at most this one
    low = np.searchsorted(begins, code, side="right")
    return low, code - np.concatenate([[0], begins])[low] + low + 1


def one_of_each(n: int, m: int, draws: np.random.Generator, size: int) -> tuple[IntArray, IntArray]:
    """Draw different pairs of one among n and one among m."""
    code = draws.choice(n * m, size, replace=False)
    return code // m, code % m

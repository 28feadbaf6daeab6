"""Learns from people whose records are known which released records go with a known history.

An example is a pair of a known search and a released record: 1 where the record is hers too, 0 where it is
not. A record's score for a person is the mean of its best few pairs with her known searches: one interest of
hers is reason enough. How high scores are differs from person to person, so they are compared with those of
records that are surely not hers. From which standing among these on a record is called hers, is learned
from the same people.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from querycloak.attacks.learned import training
from querycloak.attacks.learned.linkage import CHUNK, by_each
from querycloak.attacks.learned.training import Function, IntArray, Relations

FloatArray = npt.NDArray[np.float64]
#: Gives the relations of pairs of a person's known search and a record.
Relate = Callable[["Person", IntArray, IntArray], Relations]
Agree = Callable[[npt.NDArray[np.float32]], FloatArray]

#: Pairs of a record with known searches that count, the best ones.
BEST: Final = 3
#: Records of others that a person's scores are compared with, and people whose standings are looked at.
COMPARED: Final = 500
TRIED: Final = 30

#: How functions agree on a pair; the first axis is the functions.
AGREE: Final[dict[str, Agree]] = {
    "median": lambda scores: np.asarray(np.median(scores, axis=0), np.float64),
    "mean": lambda scores: np.asarray(np.mean(scores, axis=0), np.float64),
    "majority": lambda scores: np.asarray(np.mean(scores >= 0.5, axis=0), np.float64),
}


@dataclass(frozen=True)
class Person:
    """Somebody of whom some searches are known, as places among all events.

    `records` are hers as far as that is known, and `not_hers` surely are not. `labels` says of each event how
    many of the known searches are found under its label, where labels are looked at.
    """

    name: str
    known: IntArray
    records: IntArray
    not_hers: IntArray
    labels: FloatArray | None = None


@dataclass(frozen=True)
class Learned:
    """Functions, the people that each of them learned from, and how they agree."""

    functions: Sequence[Function]
    teachers: Sequence[frozenset[str]]
    agree: Agree

    def scores(self, relate: Relate, person: Person, records: IntArray) -> FloatArray:
        """Score records for a person by the functions that did not learn from her, if there are any."""
        each = zip(self.functions, self.teachers, strict=True)
        strange = [function for function, names in each if person.name not in names]
        return score(relate, person, records, strange or self.functions, self.agree)


def learn(relate: Relate, people: Sequence[Person], functions: int, seed: int, agree: Agree) -> Learned:
    """Learn so many functions, each from some of the people, drawn for it."""
    draws = [np.random.default_rng([seed, n]) for n in range(functions)]
    chosen = [[people[at] for at in one.permutation(len(people))[: training.PEOPLE]] for one in draws]
    given = [_examples(relate, some, one) for some, one in zip(chosen, draws, strict=True)]
    found = training.grow(given, seed)
    return Learned(found, [frozenset(person.name for person in some) for some in chosen], agree)


def score(
    relate: Relate, person: Person, records: IntArray, functions: Sequence[Function], agree: Agree
) -> FloatArray:
    """Score records for a person by their best pairs with her known searches; some records at a time."""
    found = np.empty(records.size)
    step = max(1, CHUNK // max(1, person.known.size))
    for start in range(0, records.size, step):
        some = records[start : start + step]
        pairs = relate(person, np.repeat(person.known, some.size), np.tile(some, person.known.size))
        agreed = agree(by_each(pairs, functions)).reshape(person.known.size, some.size)
        found[start : start + some.size] = np.sort(agreed, axis=0)[-BEST:].mean(0)
    return found


def standing(scores: FloatArray, compared: FloatArray) -> FloatArray:
    """Say which share of other scores each score exceeds; equal ones count half. Against none it is half."""
    if not compared.size:
        return np.full(scores.size, 0.5)
    order = np.sort(compared)
    below, upto = np.searchsorted(order, scores, "left"), np.searchsorted(order, scores, "right")
    return np.asarray((below + upto) / (2 * order.size), np.float64)


def compared_with(learned: Learned, relate: Relate, person: Person, seed: int) -> FloatArray:
    """Score some records that are not hers."""
    draws = np.random.default_rng([seed, 2])
    some = draws.permutation(person.not_hers)[:COMPARED]
    return learned.scores(relate, person, np.sort(some))


def least_standing(learned: Learned, relate: Relate, people: Sequence[Person], seed: int) -> float:
    """Find from which standing on a record is best called hers: where most is told right of known people.

    Of a record that is not hers, a standing up to s is as likely as s: that share is told right.
    """
    tried = np.random.default_rng([seed, 3]).permutation(len(people))[:TRIED]
    found = [
        np.sort(
            standing(
                learned.scores(relate, people[at], people[at].records),
                compared_with(learned, relate, people[at], seed),
            )
        )
        for at in tried
    ]
    cuts = np.unique(np.concatenate(found))
    told = [1.0 - np.searchsorted(hers, cuts, "left") / hers.size for hers in found]
    return float(cuts[np.argmax(np.mean(told, axis=0) + cuts)])


def _examples(
    relate: Relate, people: Sequence[Person], draws: np.random.Generator
) -> tuple[Relations, npt.NDArray[np.bool_]]:
    """Draw as many pairs with a record of hers as with one of others, of each person."""
    relations, same = [], []
    for person in people:
        most = min(training.PAIRS, person.known.size * person.records.size)
        size = min(most, person.known.size * person.not_hers.size)
        for records, hers in ((person.records, True), (person.not_hers, False)):
            known, other = training.one_of_each(person.known.size, records.size, draws, size)
            order = np.argsort(known, kind="stable")  # runs of one known search are read once
            relations.append(relate(person, person.known[known[order]], records[other[order]]))
            same.append(np.full(size, hers))
    return np.concatenate(relations), np.concatenate(same)

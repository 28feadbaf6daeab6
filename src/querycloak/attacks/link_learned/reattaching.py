"""Learns from people whose records are known which released records go with a known history.

An example is a pair of a known search and a released record: 1 if both are one person's, otherwise 0. A
record's score for a person is the mean of its best few pairs with the known searches: one common interest is
enough. Scores differ in height from person to person, so they are compared with those of records that are
surely others'. The rank among these from which a record is claimed is learned from the same people.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from querycloak.attacks.link_learned import training
from querycloak.attacks.link_learned.pair_scores import CHUNK, by_each
from querycloak.attacks.link_learned.training import IntArray, LinkageFunction, Relations

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

    `records` are the person's as far as that is known, and `others` surely are not. `labels` is for each
    event the number of known searches under its label, where labels are looked at.
    """

    name: str
    known: IntArray
    records: IntArray
    others: IntArray
    labels: FloatArray | None = None


@dataclass(frozen=True)
class Learned:
    """Functions, the people that each of them learned from, and how they agree."""

    functions: Sequence[LinkageFunction]
    teachers: Sequence[frozenset[str]]
    agree: Agree

    def scores(self, relate: Relate, person: Person, records: IntArray) -> FloatArray:
        """Score records for a person by the functions that did not learn from them, if there are any."""
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
    relate: Relate, person: Person, records: IntArray, functions: Sequence[LinkageFunction], agree: Agree
) -> FloatArray:
    """Score records for a person by their best pairs with known searches; some records at a time."""
    found = np.empty(records.size)
    step = max(1, CHUNK // max(1, person.known.size))
    for start in range(0, records.size, step):
        some = records[start : start + step]
        pairs = relate(person, np.repeat(person.known, some.size), np.tile(some, person.known.size))
        agreed = agree(by_each(pairs, functions)).reshape(person.known.size, some.size)
        found[start : start + some.size] = np.sort(agreed, axis=0)[-BEST:].mean(0)
    return found


def standing(scores: FloatArray, compared: FloatArray) -> FloatArray:
    """Return the share of other scores that each score exceeds; ties count half. Half without others."""
    if not compared.size:
        return np.full(scores.size, 0.5)
    order = np.sort(compared)
    below, upto = np.searchsorted(order, scores, "left"), np.searchsorted(order, scores, "right")
    return np.asarray((below + upto) / (2 * order.size), np.float64)


def compared_with(learned: Learned, relate: Relate, person: Person, seed: int) -> FloatArray:
    """Return the scores of some records of others."""
    draws = np.random.default_rng([seed, 2])
    some = draws.permutation(person.others)[:COMPARED]
    return learned.scores(relate, person, np.sort(some))


def least_standing(learned: Learned, relate: Relate, people: Sequence[Person], seed: int) -> float:
    """Return the rank threshold with the best balanced accuracy on the training people.

    A record of others has a rank up to s with probability s: that share is classified correctly.
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
    told = [1.0 - np.searchsorted(ranks, cuts, "left") / ranks.size for ranks in found]
    return float(cuts[np.argmax(np.mean(told, axis=0) + cuts)])


def _examples(
    relate: Relate, people: Sequence[Person], draws: np.random.Generator
) -> tuple[Relations, npt.NDArray[np.bool_]]:
    """Draw as many pairs with a record of the person as with one of others, for each person."""
    relations, same = [], []
    for person in people:
        most = min(training.PAIRS, person.known.size * person.records.size)
        size = min(most, person.known.size * person.others.size)
        for records, own in ((person.records, True), (person.others, False)):
            known, other = training.one_of_each(person.known.size, records.size, draws, size)
            order = np.argsort(known, kind="stable")  # runs of one known search are read once
            relations.append(relate(person, person.known[known[order]], records[other[order]]))
            same.append(np.full(size, own))
    return np.concatenate(relations), np.concatenate(same)

"""`link-learned` on a release: which released records are those of a person of whom some history is known?

It learns from people whose records are known. An example is a pair of a known search and a released record: 1
if both are one person's, otherwise 0. A record's score for a person is the mean of its best few pairs with
the known searches: one common interest is enough. Scores differ in height from person to person, so they are
compared with those of records that are surely others'. The rank among these from which a record is claimed is
learned from the same people.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.attacks.auxiliary import (
    CandidateRecords,
    EarlySearches,
    Request,
    TrainingRecords,
    TrainingSearches,
)
from querycloak.attacks.base import Attack, AttackerView, Claim, RecordClaims
from querycloak.attacks.case import LANDING
from querycloak.attacks.link_learned import features, training
from querycloak.attacks.link_learned import relations_kernel as kernel
from querycloak.attacks.link_learned.pair_scores import CHUNK, by_each
from querycloak.attacks.link_learned.training import LinkageFunction, Relations
from querycloak.attacks.link_learned.words import TermFrequencies
from querycloak.errors import NotApplicable
from querycloak.log import CANONICAL, Flags, FloatArray, IntArray

#: The relation that the paper does not have.
LABEL: Final = "S_Label"
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


class LinkReleased(Attack):
    """Claims released records for targets, by what it learned on the records of other users.

    The attacker knows the first searches of each target, as typed, and of some other people
    both these and their released records: boosted trees learn from 27 relations of a known search and
    a record whether one person is behind both.
    """

    name = "link-learned"
    game = "linkage"
    columns = frozenset({"query"})
    certified = False
    fast = False

    def requests(self) -> tuple[Request, ...]:
        """Return requests for early searches of targets and others, records of others, and candidates."""
        chosen: Any = self.settings
        drawn = chosen.targets, chosen.functions * training.PEOPLE, chosen.history, chosen.seed
        return (
            EarlySearches(*drawn),
            TrainingSearches(*drawn),
            TrainingRecords(*drawn),
            CandidateRecords(*drawn, chosen.candidates),
        )

    def guess(self, view: AttackerView) -> RecordClaims:
        """Learn from the acquainted, then score all candidates for each target."""
        chosen: Any = self.settings
        if not view.auxiliary[EarlySearches.name].height:
            raise NotApplicable("nobody has four searches while another is left to learn from")
        table = Table.of(view, labels=chosen.labels)
        candidates = table.places(view.auxiliary[CandidateRecords.name])
        theirs = view.auxiliary[TrainingRecords.name]
        teachers = table.teachers(theirs, chosen.lessons)
        if not teachers:
            raise NotApplicable("nobody beside the targets has records to learn from")
        learned = Learned.of(table.relate, teachers, chosen.functions, chosen.seed, AGREE[chosen.aggregate])
        least = learned.least_standing(teachers)
        claims = []
        for person in table.targets(view.auxiliary[EarlySearches.name]["user"], theirs):
            scores = learned.scores(person, candidates)
            claims.append(Claim(person.name, scores, learned.standings(person, scores) >= least))
        about = {
            "learned_from": len(teachers),
            "functions": len(learned.functions),
            "aggregate": chosen.aggregate,
            "labels": chosen.labels,
            "called_hers_from": round(least, 4),
            "landing_pages_from": table.read.landing_from,
            "importances": training.importances(learned.functions, table.names),
        }
        return RecordClaims(table.released_row[candidates], tuple(claims), about)


@dataclass(frozen=True)
class Table:
    """All searches that the attack looks at, read at once: known ones of people, and released records.

    `heads` has the `person` who is known to have asked each, or the `released_row` that it begins with.
    """

    read: features.Events
    heads: pl.DataFrame
    content: pl.Series
    shares: LabelShares | None

    @classmethod
    def of(cls, view: AttackerView, *, labels: bool) -> Table:
        """Read what is known and what was released by the columns that both have."""
        if labels and not view.release.get_column("user", default=pl.Series()).count():
            raise NotApplicable("the release has no user, and so no labels to look at")
        known = pl.concat([view.auxiliary[TrainingSearches.name], view.auxiliary[EarlySearches.name]])
        theirs = _released(view, TrainingRecords.name)
        frame = _stacked(known, theirs, _released(view, CandidateRecords.name))
        others = [part.select("query") for part in (view.auxiliary[TrainingSearches.name], theirs)]
        read = features.read(frame, TermFrequencies.of(pl.concat(others)))
        heads = frame[read.searches.first_row]
        content = heads.drop("user", "person", "label", "released_row").hash_rows(0)
        return cls(read, heads, content, LabelShares.of(view.release, known["query"]) if labels else None)

    @property
    def released_row(self) -> IntArray:
        """The row that a released record begins with; -1 for known searches."""
        return self.heads["released_row"].fill_null(-1).to_numpy()

    @property
    def names(self) -> Sequence[str]:
        """The relations, in the order of `relate`."""
        return (*kernel.NAMES, LABEL) if self.shares else kernel.NAMES

    def relate(self, person: Person, known: IntArray, records: IntArray) -> Relations:
        """Compare known searches of a person with released records."""
        found = self.read.relate(known, records)
        if person.labels is None:
            return found
        return np.column_stack([found, person.labels[records].astype(np.float32)])

    def places(self, rows: pl.DataFrame) -> IntArray:
        """Find the records that begin with one of these rows."""
        return np.flatnonzero(self.heads["released_row"].is_in(rows["released_row"].implode()).to_numpy())

    def teachers(self, theirs: pl.DataFrame, lessons: int) -> list[Person]:
        """Return what is known of the training users who have records, beside records of others."""
        found = []
        for rows in theirs.partition_by("user", maintain_order=True):
            places = self.places(rows)
            records = places[np.argsort(self.read.numbers[places, kernel.TIME], kind="stable")][:lessons]
            person = self._person(rows["user"][0], records, np.flatnonzero(self.released_row >= 0))
            if person.known.size and person.records.size and person.others.size:
                found.append(person)
        return found

    def targets(self, names: pl.Series, theirs: pl.DataFrame) -> list[Person]:
        """Return what is known of targets: records of training users are not theirs."""
        return [
            self._person(name, np.empty(0, np.int64), self.places(theirs))
            for name in names.unique(maintain_order=True)
        ]

    def _person(self, name: str, records: IntArray, others: IntArray) -> Person:
        """Return a person with others' records, without equal ones and those before the last known search."""
        known = np.flatnonzero((self.heads["person"] == name).fill_null(value=False).to_numpy())
        when = self.read.numbers[:, kernel.TIME]
        until = np.fmax.reduce(when[known], initial=-np.inf)  # where no time is known, nothing is before
        same = self.content.is_in(self.content[records].implode()).to_numpy()
        later = others[~same[others] & ~(when[others] <= until)]
        labels = None
        if self.shares is not None:
            labels = self.shares(self.heads["query"][known], self.heads.select("query", user="label"))
        return Person(name, known, records, later, labels)


def _released(view: AttackerView, name: str) -> pl.DataFrame:
    """Look up the released rows that are spoken of; `of` is whose they are, where that is known."""
    spoken = view.auxiliary[name]
    whose = pl.col("user") if "user" in spoken.columns else pl.lit(None, pl.String)
    rows = view.release.join(
        spoken.select("released_row", of=whose), on="released_row", how="inner", maintain_order="left"
    )
    return rows if "user" in rows.columns else rows.with_columns(user=pl.lit(None, pl.String))


def _stacked(known: pl.DataFrame, *released: pl.DataFrame) -> pl.DataFrame:
    """Return known searches and released records in one frame, in which `user` keeps their clicks apart."""
    found = [
        name for name in (*CANONICAL, LANDING) if all(name in rows.columns for rows in (known, *released))
    ]
    shared = [name for name in found if name != "user"]
    nothing = pl.lit(None, pl.String)
    asked = known.select(
        *shared,
        person="user",
        label=nothing,
        user="known " + pl.col("user"),
        released_row=pl.lit(None, pl.Int64),
    )
    parts = [
        rows.select(
            *shared,
            person=nothing,
            label="user",
            user=pl.format("released {} {}", pl.col("of").fill_null(""), pl.col("user").fill_null("")),
            released_row=pl.col("released_row").cast(pl.Int64),
        ).cast(asked.schema)
        for rows in released
    ]
    return pl.concat([asked, *parts])


@dataclass(frozen=True)
class LabelShares:
    """Of each text that somebody is known to have asked: how many records each label has with it.

    `counts` is `query, user, here, labels`: records of the text under the label, and all labels that it has.
    """

    counts: pl.DataFrame

    @classmethod
    def of(cls, release: pl.DataFrame, texts: pl.Series) -> LabelShares:
        """Look these texts up in a release."""
        wanted = pl.DataFrame({"query": texts.drop_nulls().unique()})
        rows = release.select("query", "user").drop_nulls().join(wanted, on="query", how="semi")
        counts = rows.group_by("query", "user").agg(here=pl.len()).sort("query", "user")
        return cls(counts.with_columns(labels=pl.len().over("query")))

    def __call__(self, known: pl.Series, records: pl.DataFrame) -> FloatArray:
        """Return for each record the share of known searches found under its label, the record aside.

        A text under many labels counts less: by one over their number.
        """
        asked = pl.DataFrame({"query": known}).drop_nulls()
        texts = asked.group_by("query").agg(times=pl.len()).join(self.counts, on="query")
        found = records.select("query", "user").with_row_index("at").join(
            texts.rename({"query": "text"}), on="user", how="inner"
        )  # fmt: skip
        itself = (pl.col("text") == pl.col("query")) & (pl.col("here") == 1)
        weight = pl.col("times") / pl.col("labels")
        each = found.filter(~itself.fill_null(value=False)).group_by("at").agg(total=weight.sum())
        shares = np.zeros(records.height)
        shares[each["at"].to_numpy()] = each["total"].to_numpy() / max(1, len(known))
        return shares


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

    relate: Relate
    functions: Sequence[LinkageFunction]
    teachers: Sequence[frozenset[str]]
    agree: Agree
    seed: int

    @classmethod
    def of(cls, relate: Relate, people: Sequence[Person], functions: int, seed: int, agree: Agree) -> Learned:
        """Learn so many functions, each from some of the people, drawn for it."""
        draws = [np.random.default_rng([seed, n]) for n in range(functions)]
        chosen = [[people[at] for at in one.permutation(len(people))[: training.PEOPLE]] for one in draws]
        given = [_examples(relate, some, one) for some, one in zip(chosen, draws, strict=True)]
        names = [frozenset(person.name for person in some) for some in chosen]
        return cls(relate, training.grow(given, seed), names, agree, seed)

    def scores(self, person: Person, records: IntArray) -> FloatArray:
        """Score records for a person by their best pairs with known searches; some records at a time.

        Only functions that did not learn from the person count, if there are any.
        """
        each = zip(self.functions, self.teachers, strict=True)
        functions = [function for function, names in each if person.name not in names] or self.functions
        found = np.empty(records.size)
        step = max(1, CHUNK // max(1, person.known.size))
        for start in range(0, records.size, step):
            some = records[start : start + step]
            pairs = self.relate(person, np.repeat(person.known, some.size), np.tile(some, person.known.size))
            agreed = self.agree(by_each(pairs, functions)).reshape(person.known.size, some.size)
            found[start : start + some.size] = np.sort(agreed, axis=0)[-BEST:].mean(0)
        return found

    def standings(self, person: Person, scores: FloatArray) -> FloatArray:
        """Return the share of scores of others' records that each score exceeds; ties count half.

        Half without others.
        """
        some = np.random.default_rng([self.seed, 2]).permutation(person.others)[:COMPARED]
        if not some.size:
            return np.full(scores.size, 0.5)
        order = np.sort(self.scores(person, np.sort(some)))
        below, upto = np.searchsorted(order, scores, "left"), np.searchsorted(order, scores, "right")
        return np.asarray((below + upto) / (2 * order.size), np.float64)

    def least_standing(self, people: Sequence[Person]) -> float:
        """Return the rank threshold with the best balanced accuracy on the training people.

        A record of others has a rank up to s with probability s: that share is classified correctly.
        """
        drawn = np.random.default_rng([self.seed, 3]).permutation(len(people))[:TRIED]
        tried = [people[at] for at in drawn]
        found = [np.sort(self.standings(one, self.scores(one, one.records))) for one in tried]
        cuts = np.unique(np.concatenate(found))
        told = [1.0 - np.searchsorted(ranks, cuts, "left") / ranks.size for ranks in found]
        return float(cuts[np.argmax(np.mean(told, axis=0) + cuts)])


def _examples(
    relate: Relate, people: Sequence[Person], draws: np.random.Generator
) -> tuple[Relations, Flags]:
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

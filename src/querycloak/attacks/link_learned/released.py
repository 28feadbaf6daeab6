"""`link-learned` on a release: which released records are those of a person of whom some history is known?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.attacks.auxiliary import (
    CandidateRecords,
    EarlySearches,
    Request,
    TraceColumns,
    TrainingRecords,
    TrainingSearches,
)
from querycloak.attacks.base import Attack, AttackerView, Claim, RecordClaims
from querycloak.attacks.case import LANDING
from querycloak.attacks.link_learned import features, reattaching, training
from querycloak.attacks.link_learned import relations_kernel as kernel
from querycloak.attacks.link_learned.reattaching import Person
from querycloak.attacks.link_learned.words import FloatArray, TermFrequencies
from querycloak.errors import NotApplicable
from querycloak.log import CANONICAL, IntArray

#: The relation that the paper does not have.
LABEL: Final = "S_Label"


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
            TraceColumns(frozenset({LANDING})),
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
        agree = reattaching.AGREE[chosen.aggregate]
        learned = reattaching.learn(table.relate, teachers, chosen.functions, chosen.seed, agree)
        least = reattaching.least_standing(learned, table.relate, teachers, chosen.seed)
        claims = []
        for person in table.targets(view.auxiliary[EarlySearches.name]["user"], theirs):
            scores = learned.scores(table.relate, person, candidates)
            compared = reattaching.compared_with(learned, table.relate, person, chosen.seed)
            claims.append(Claim(person.name, scores, reattaching.standing(scores, compared) >= least))
        about = self._details(table, learned, teachers, least)
        return RecordClaims(table.released_row[candidates], tuple(claims), about)

    def _details(
        self, table: Table, learned: reattaching.Learned, teachers: Sequence[Person], least: float
    ) -> dict[str, Any]:
        chosen: Any = self.settings
        return {
            "learned_from": len(teachers),
            "functions": len(learned.functions),
            "aggregate": chosen.aggregate,
            "labels": chosen.labels,
            "called_hers_from": round(least, 4),
            "landing_pages_from": table.read.landing_from,
            "importances": training.importances(learned.functions, table.names),
        }


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
        frame = _stacked(known, _released(view, TrainingRecords.name), _released(view, CandidateRecords.name))
        read = features.read(frame, _background(view))
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

    def relate(self, person: Person, known: IntArray, records: IntArray) -> training.Relations:
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
            records = self._in_time(self.places(rows))[:lessons]
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
        return Person(name, known, records, later, self._labels(known))

    def _labels(self, known: IntArray) -> reattaching.FloatArray | None:
        if self.shares is None:
            return None
        records = self.heads.select("query", user="label")
        return self.shares(self.heads["query"][known], records)

    def _in_time(self, places: IntArray) -> IntArray:
        return places[np.argsort(self.read.numbers[places, kernel.TIME], kind="stable")]


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


def _background(view: AttackerView) -> TermFrequencies:
    """Count the terms of those whose records are known."""
    known = view.auxiliary[TrainingSearches.name].select("query")
    return TermFrequencies.of(pl.concat([known, _released(view, TrainingRecords.name).select("query")]))


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

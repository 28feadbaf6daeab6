"""Draws the auxiliary information of attacks: one class per kind, with its draw from a case.

A request is made from the settings of an attack. The same request on the same case draws the same data.
Names of targets are made up, so that they reveal nothing; who they are goes to scoring only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

import numpy as np
import polars as pl

from querycloak.attacks.case import Case
from querycloak.attacks.searches import Searches, in_terms, in_time
from querycloak.errors import NotApplicable, QueryCloakError
from querycloak.knowledge import Knowledge
from querycloak.log import CANONICAL, Flags

#: Users with fewer rows are not attacked: some searches must be known, and some left to find.
_FEWEST_ROWS: Final = 4
#: Searches of a target that are known if the settings do not state a number.
HISTORY: Final = 20


@dataclass(frozen=True)
class AuxiliaryData:
    """What an attacker knows beside the release.

    `people` leads from made-up names of targets to users, and `traces` has the labels of the traces under
    attack. Both are for scoring; an attack receives the frame only.
    """

    frame: pl.DataFrame
    people: Mapping[str, str] = field(default_factory=dict)
    traces: Collection[str] = ()


class Request(ABC):
    """One kind of auxiliary information, with the settings that its draw needs."""

    #: Under which the attack finds the frame in its view.
    name: ClassVar[str]
    #: What an attacker with this information knows, unless that depends on the settings.
    grants: ClassVar[Knowledge]

    @property
    def original_columns(self) -> frozenset[str]:
        """Columns of the original that the draw reads, beside user, query and category."""
        return frozenset()

    def knowledge(self) -> Knowledge:
        """Return what an attacker with this information knows."""
        return self.grants

    @abstractmethod
    def draw(self, case: Case) -> AuxiliaryData:
        """Draw the information from a case."""


@dataclass(frozen=True)
class KnownVolumes(Request):
    """The number of searches of each user, as `user` and `count`.

    `user` is the user's id, which is also the label where labels are kept. Where labels are fresh pseudonyms
    it is a made-up name: nobody knows whose pseudonym is whose.
    """

    name: ClassVar[str] = "volumes"
    grants: ClassVar = Knowledge.VOLUMES

    def draw(self, case: Case) -> AuxiliaryData:
        """Count the records of each user in the original."""
        counts = case.original.group_by("user", maintain_order=True).agg(count=pl.len().cast(pl.Int64))
        counts = counts.sort("user")
        if case.truth.user.equals(case.truth.label, check_names=False):
            return AuxiliaryData(counts)
        named = _named(counts[np.random.default_rng(0).permutation(counts.height)], "target")
        return AuxiliaryData(named.select(pl.col("name").alias("user"), "count"), _people(named))


@dataclass(frozen=True)
class Frequencies(Request):
    """How often each query was asked in the original by all users, as `query` and `count`."""

    name: ClassVar[str] = "frequencies"
    grants: ClassVar = Knowledge.FREQUENCIES

    def draw(self, case: Case) -> AuxiliaryData:
        """Count the queries of the original."""
        queries = case.original.select("query").drop_nulls()
        return AuxiliaryData(queries.group_by("query").agg(count=pl.len().cast(pl.Int64)).sort("query"))


@dataclass(frozen=True)
class KnownSearches(Request):
    """Some searches of each target, drawn at random, as `user` (a made-up name) and `query` or `term`.

    Texts are distinct, and users with fewer distinct texts are no targets. `unit` is `query` for whole
    queries or `term` for single terms. With `time` other than `none`, the frame also has `time`, cut to the
    hour or the day.
    """

    targets: int
    searches: int = 3
    unit: Literal["query", "term"] = "query"
    time: Literal["none", "hour", "day"] = "none"
    seed: int = 0
    name: ClassVar[str] = "samples"

    @property
    def original_columns(self) -> frozenset[str]:
        """The time, if it is known."""
        return frozenset[str]() if self.time == "none" else frozenset({"time"})

    def knowledge(self) -> Knowledge:
        """Return TEXTS, or SEARCHES if times are known as well."""
        return Knowledge.TEXTS if self.time == "none" else Knowledge.SEARCHES

    def draw(self, case: Case) -> AuxiliaryData:
        """Draw targets with enough searches, and searches of each."""
        return self._terms(case) if self.unit == "term" else self._queries(case)

    def _queries(self, case: Case) -> AuxiliaryData:
        draws = np.random.default_rng(self.seed)
        texts = case.original.drop_nulls(["user", "query"]).group_by("user").agg(n=pl.col("query").n_unique())
        sizes = texts.filter(pl.col("n") >= self.searches).sort("user")
        chosen = draws.permutation(sizes.height)[: self.targets]
        named = _named(sizes[chosen].select("user"), "target")
        known = case.original.drop_nulls("query")
        theirs = known.join(named, on="user", how="inner", maintain_order="left")
        shuffled = theirs.with_columns(draw=pl.Series(draws.random(theirs.height))).sort("name", "draw")
        # Clicks and repetitions of a search reveal nothing new, so that the known texts are distinct.
        distinct = shuffled.unique(["name", "query"], keep="first", maintain_order=True)
        sample = distinct.group_by("name", maintain_order=True).head(self.searches)
        times = self._times(case)
        return AuxiliaryData(sample.select(pl.col("name").alias("user"), "query", *times), _people(named))

    def _times(self, case: Case) -> list[pl.Expr]:
        if self.time == "none":
            return []
        if "time" not in case.original.columns:
            raise NotApplicable("the original has no time")
        return [pl.col("time").dt.truncate({"hour": "1h", "day": "1d"}[self.time])]

    def _terms(self, case: Case) -> AuxiliaryData:
        """Draw targets who have enough distinct terms, and distinct terms of each."""
        draws = np.random.default_rng(self.seed)
        people = case.original.select("user").drop_nulls().unique().sort("user")
        people = people[draws.permutation(people.height)]
        found = [pl.DataFrame(schema={"user": pl.String, "term": pl.List(pl.String)})]
        start, step = 0, self.targets
        # In growing steps: the terms of a whole large log would be many, and are seldom needed.
        while start < people.height and sum(part.height for part in found) < self.targets:
            found.append(self._some_terms(case.original, people[start : start + step], draws))
            start, step = start + step, 2 * step
        known = _named(pl.concat(found)[: self.targets], "target")
        return AuxiliaryData(known.select(user="name", term="term").explode("term"), _people(known))

    def _some_terms(
        self, original: pl.DataFrame, people: pl.DataFrame, draws: np.random.Generator
    ) -> pl.DataFrame:
        """Return lists of terms, as `user, term`; users with too few terms are left out."""
        rows = original.join(people, on="user", how="semi").select("user", thing="query")
        terms = in_terms(rows.drop_nulls().unique()).unique().sort("user", "thing")
        shuffled = terms.with_columns(draw=pl.Series(draws.random(terms.height))).sort("user", "draw")
        each = shuffled.group_by("user").agg(term=pl.col("thing").head(self.searches), n=pl.len())
        enough = each.filter(pl.col("n") >= self.searches).select("user", "term")
        return people.join(enough, on="user", how="inner", maintain_order="left")


@dataclass(frozen=True)
class Histories(Request):
    """Whole histories of targets, as `user` (a made-up name), `query` and, if there is one, `category`.

    At most `targets` users are drawn; 0 for all.
    """

    targets: int = 0
    seed: int = 0
    name: ClassVar[str] = "histories"
    grants: ClassVar = Knowledge.HISTORIES

    def draw(self, case: Case) -> AuxiliaryData:
        """Draw targets, and return their rows, ordered by target."""
        people = case.original.select("user").drop_nulls().unique().sort("user")
        # In random order, so that neither names nor places tell whose label is whose.
        order = np.random.default_rng(self.seed).permutation(people.height)
        named = _named(people[order[: self.targets or None]], "target").with_row_index("place")
        rows = case.original.join(named, on="user", how="inner", maintain_order="left")
        shown = [name for name in ("query", "category") if name in rows.columns]
        histories = rows.sort("place", maintain_order=True).select(pl.col("name").alias("user"), *shown)
        return AuxiliaryData(histories, _people(named))


@dataclass(frozen=True)
class TrainingRelease(Request):
    """A release of a synthetic log by the same methods and settings, with its ground truth.

    The frame has the released columns, `author`, and the columns of the original row as `original_query`,
    `original_time` and so on. Every attacker can make one: the certificate has the settings.
    """

    users: int
    seed: int = 0
    name: ClassVar[str] = "training"
    grants: ClassVar = Knowledge.RELEASE

    def draw(self, case: Case) -> AuxiliaryData:
        """Protect a synthetic log as the certificate has it."""
        from querycloak.synthetic import generate

        if case.protect is None:
            raise NotApplicable("its methods cannot be run here on a training log")
        log = generate(self.users, self.seed, categories=True)
        try:
            made = case.protect(log)
        except QueryCloakError as error:  # such as a method that needs a file which is not here
            raise NotApplicable(
                f"its methods cannot be run here on a training log: {error.message}"
            ) from None
        columns = [name for name in CANONICAL if name in log.frame.columns and name != "user"]
        originals = log.frame.select(
            pl.col("row").cast(pl.Int64).alias("original_row"), pl.col(columns).name.prefix("original_")
        )
        truth = made.truth.select(
            pl.col("released_row", "original_row").cast(pl.Int64), author="original_user"
        )
        known = truth.join(originals, on="original_row", how="left", maintain_order="left")
        rows = made.log.frame.with_columns(released_row=pl.col("row").cast(pl.Int64)).drop("row")
        return AuxiliaryData(rows.join(known, on="released_row", how="left", maintain_order="left"))


@dataclass(frozen=True)
class Targets(Request):
    """The traces under attack, as `user`: at least half of all traces are left to learn from."""

    targets: int
    seed: int = 0
    name: ClassVar[str] = "targets"
    grants: ClassVar = Knowledge.RELEASE

    def draw(self, case: Case) -> AuxiliaryData:
        """Draw traces with enough rows."""
        drawn = self._drawn(case)
        return AuxiliaryData(drawn, traces=set(drawn["user"]))

    def _drawn(self, case: Case) -> pl.DataFrame:
        users, everyone = _shuffled(case.release, self.seed)
        return users[: min(self.targets, everyone // 2)]


@dataclass(frozen=True)
class LabelledTraces(Targets):
    """The rows of all traces that are not under attack, with `fake`."""

    name: ClassVar[str] = "labelled"
    grants: ClassVar = Knowledge.OTHERS

    def draw(self, case: Case) -> AuxiliaryData:
        """Return the rows of the other traces."""
        if case.truth.fake is None:
            raise NotApplicable("the truth does not say which searches are fake")
        rows = case.release.with_columns(fake=pl.Series(case.truth.fake))
        return AuxiliaryData(rows.join(self._drawn(case), on="user", how="anti", maintain_order="left"))


@dataclass(frozen=True)
class KnownRecords(Targets):
    """The first `history` real searches of each target, as `user` and `released_row`."""

    history: int = 0
    name: ClassVar[str] = "told"

    def knowledge(self) -> Knowledge:
        """Return SEARCHES, or nothing beside the release if no search is known."""
        return Knowledge.SEARCHES if self.history else Knowledge.RELEASE

    def draw(self, case: Case) -> AuxiliaryData:
        """Return the first rows of real searches."""
        fake = pl.Series(np.zeros(case.release.height, bool) if case.truth.fake is None else case.truth.fake)
        rows = in_time(case.release.filter(~fake).join(self._drawn(case), on="user", how="semi"))
        first = rows[Searches.of(rows).first_row]
        few = first.filter(pl.int_range(pl.len()).over("user") < self.history)
        return AuxiliaryData(few.select("user", "released_row"))


@dataclass(frozen=True)
class Circle:
    """Targets, and other users whose records are known, each as `user` and a made-up `name`."""

    case: Case
    targets: pl.DataFrame
    others: pl.DataFrame
    history: int
    seed: int

    @property
    def people(self) -> Mapping[str, str]:
        """The users behind the made-up names of targets."""
        return _people(self.targets)

    def known(self, people: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the first searches of these users, with `row` and `name`.

        At least half of each user's searches stay unknown.
        """
        numbered = self.case.original.with_columns(row=self.case.rows)
        rows = in_time(numbered.join(people, on="user", how="inner", maintain_order="left"))
        searches = Searches.of(rows)
        heads = rows[searches.first_row].select(
            nth=pl.int_range(pl.len()).over("user"), most=pl.len().over("user") // 2
        )
        early = (heads["nth"] < heads["most"].clip(upper_bound=self.history)).to_numpy()
        return rows.filter(pl.Series(early[searches.of_row], dtype=pl.Boolean))

    def later_records(self) -> pl.DataFrame:
        """Return `user`, a made-up name, and `released_row` of the later records of the training users."""
        known = {part["user"][0]: part for part in self.known(self.others).partition_by("user")}
        release = self.case.release.with_columns(_author=self.case.truth.user, _origin=self.case.origins)
        theirs = release.join(self.others.rename({"user": "_author"}), on="_author", how="inner")
        found = [pl.DataFrame(schema={"user": pl.String, "released_row": theirs.schema["released_row"]})]
        for rows in theirs.partition_by("_author", maintain_order=True):
            if (before := known.get(rows["_author"][0])) is not None:
                new = ~already_known(before, rows, rows["_origin"])
                later = rows.filter(pl.Series(new, dtype=pl.Boolean))
                found.append(later.select("released_row", user="name").select("user", "released_row"))
        return pl.concat(found)

    def candidates(self, most: int) -> pl.DataFrame:
        """Return the rows of all searches of targets, and of `most` searches of unknown users."""
        author = self.case.truth.user
        free = author.is_not_null() & ~author.is_in(self.others["user"].implode())
        rows = self.case.release.with_columns(_author=author).filter(free)
        searches = Searches.of(rows)
        own = rows["_author"].is_in(self.targets["user"].implode()).to_numpy()[searches.first_row]
        strange = np.flatnonzero(~own)
        drawn = np.random.default_rng([self.seed, 1]).permutation(strange)[:most]
        chosen = own.copy()
        chosen[drawn] = True
        return rows.filter(pl.Series(chosen[searches.of_row], dtype=pl.Boolean)).select("released_row")


@dataclass(frozen=True)
class EarlySearches(Request):
    """The first searches of each target as typed: all columns of the original, `user` being a made-up name.

    `others` is the number of further users, at most, whose searches and records are known.
    """

    targets: int
    others: int
    history: int = 0
    seed: int = 0
    name: ClassVar[str] = "remembered"
    grants: ClassVar = Knowledge.SEARCHES

    original_columns = frozenset(CANONICAL)

    def draw(self, case: Case) -> AuxiliaryData:
        """Return the rows of the first searches of targets."""
        circle = self.circle(case)
        return AuxiliaryData(_renamed(circle.known(circle.targets)), circle.people)

    def circle(self, case: Case) -> Circle:
        """Draw targets, at most half of all users, and of the others at most half to learn from."""
        users, everyone = _shuffled(case.original, self.seed)
        wanted = min(self.targets, everyone // 2)
        learned_from = users[wanted:][: min(-(-max(0, users.height - wanted) // 2), self.others)]
        known = _named(users[:wanted], "target"), _named(learned_from, "other")
        return Circle(case, *known, self.history or HISTORY, self.seed)


@dataclass(frozen=True)
class TrainingSearches(EarlySearches):
    """The first searches of some other users, whose records are known as well."""

    name: ClassVar[str] = "acquainted"
    grants: ClassVar = Knowledge.OTHERS

    def draw(self, case: Case) -> AuxiliaryData:
        """Return the rows of the first searches of training users."""
        circle = self.circle(case)
        return AuxiliaryData(_renamed(circle.known(circle.others)))


@dataclass(frozen=True)
class TrainingRecords(TrainingSearches):
    """The later records of the training users, as `user` and `released_row`."""

    name: ClassVar[str] = "theirs"

    def draw(self, case: Case) -> AuxiliaryData:
        """Return the later records of the training users."""
        return AuxiliaryData(self.circle(case).later_records())


@dataclass(frozen=True)
class CandidateRecords(EarlySearches):
    """The `released_row` of records that can be the targets', among records of unknown users.

    It limits the work, and reveals nothing.
    """

    candidates: int = 2000
    name: ClassVar[str] = "candidates"
    grants: ClassVar = Knowledge.RELEASE

    def draw(self, case: Case) -> AuxiliaryData:
        """Return the candidates."""
        return AuxiliaryData(self.circle(case).candidates(self.candidates))


def already_known(known: pl.DataFrame, released: pl.DataFrame, origin: pl.Series) -> Flags:
    """Return a mask of rows that the known searches already reveal; they are left out of the score.

    These are the known searches, rows without an original with the text of one, and all rows up to the time
    of the last one.
    """
    found = origin.cast(pl.Int64).is_in(known["row"].cast(pl.Int64).implode()).fill_null(value=False)
    found |= origin.is_null() & released["query"].is_in(known["query"].implode()).fill_null(value=False)
    if "time" in known.columns and "time" in released.columns and known["time"].max() is not None:
        found |= (released["time"] <= known["time"].max()).fill_null(value=False)
    return found.to_numpy()


def _shuffled(frame: pl.DataFrame, seed: int) -> tuple[pl.DataFrame, int]:
    """Return the users with enough rows in random order, as `user`, and the number of all users."""
    sizes = frame.group_by("user").agg(n=pl.len()).drop_nulls("user").sort("user")
    usable = sizes.filter(pl.col("n") >= _FEWEST_ROWS).select("user")
    return usable[np.random.default_rng(seed).permutation(usable.height)], sizes.height


def _named(people: pl.DataFrame, kind: str) -> pl.DataFrame:
    names = pl.Series("name", [f"{kind} {n}" for n in range(people.height)], dtype=pl.String)
    return people.with_columns(names)


def _people(named: pl.DataFrame) -> Mapping[str, str]:
    return dict(zip(named["name"], named["user"], strict=True))


def _renamed(known: pl.DataFrame) -> pl.DataFrame:
    return known.drop("row", "user").rename({"name": "user"})

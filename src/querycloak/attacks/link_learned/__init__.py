"""`link-learned`: tells a person's searches from fakes, or from others', by what it learned on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.attacks.auxiliary import KnownRecords, LabelledTraces, Request, Targets
from querycloak.attacks.base import Attack, AttackerView, ClusteredTrace, TraceClusters
from querycloak.attacks.case import LANDING
from querycloak.attacks.link_learned import features, pair_scores, training
from querycloak.attacks.link_learned.relations_kernel import NAMES
from querycloak.attacks.link_learned.released import LinkReleased
from querycloak.attacks.link_learned.words import TermFrequencies
from querycloak.attacks.searches import Searches, in_time
from querycloak.errors import NotApplicable
from querycloak.log import IntArray
from querycloak.settings import setting


class LinkLearned(Attack):
    """Sorts each target's searches into clusters, by linkage functions learned on other people.

    For traces in which fakes hide real searches (`querycloak obfuscate`). The attacker knows which searches
    of people other than the targets are fake: he ran their obfuscation, or watched it. Boosted trees learn
    from 27 relations of two searches whether one person asked both; all pairs of a target's searches are
    scored, and the graph of these scores is cut.

    In a release without fakes it asks which records are those of people of whom it knows some history. It
    learns that from others of whom it knows history and records.

    Limits: targets are a sample. Nothing is claimed about attackers who know more, and no bound is promised.
    """

    name = "link-learned"
    game = "linkage"
    trace_columns = frozenset({LANDING})
    certified = False
    fast = False

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `link-learned`."""

        targets: int = setting(
            20, at_least=1, help="people to attack, drawn; at most half of all, others are learned from"
        )
        functions: int = setting(
            15, at_least=1, at_most=200, help="linkage functions to learn (the paper: 60)"
        )
        aggregate: str = setting(
            "median",
            choices=("median", "mean", "majority"),
            help="how functions agree: median or mean of their scores, or majority of their clusterings",
        )
        clusters: int = setting(2, at_least=2, at_most=10, help="clusters to sort searches into")
        history: int = setting(
            0,
            at_least=0,
            help="searches of each target known to be real; they mark its cluster. In a release: 20 if 0",
        )
        lessons: int = setting(130, at_least=2, help="a person's first real searches, which are learned from")
        events: int = setting(
            2000, at_least=4, at_most=5000, help="first searches of a target to look at, at most"
        )
        pairs: str = setting(
            "paper",
            choices=("paper", "all"),
            help="what is learned from: `paper` leaves pairs of two fakes out, `all` takes them as linked",
        )
        candidates: int = setting(
            2000, at_least=1, help="in a release: searches of others among the target's own"
        )
        labels: bool = setting(
            False, help="in a release: also look under which labels known searches are found"
        )
        seed: int = setting(0, at_least=0, help="what all draws start from")

    settings: Settings

    def requests(self) -> tuple[Request, ...]:
        """Return requests for the targets, labelled traces of others, and known searches of targets."""
        drawn = self.settings.targets, self.settings.seed
        return (Targets(*drawn), LabelledTraces(*drawn), KnownRecords(*drawn, self.settings.history))

    def against(self, *, fakes: bool) -> Attack:
        """Return the form that detects fakes, or the one that finds records of partly known users."""
        return self if fakes else LinkReleased(self.settings)

    def guess(self, view: AttackerView) -> TraceClusters:
        """Learn from the labelled, then separate the searches of each target."""
        targets = view.auxiliary[Targets.name]
        if not targets.height:
            raise NotApplicable("nobody has four searches while another is left to learn from")
        known = view.auxiliary[LabelledTraces.name]
        background = TermFrequencies.of(known.filter(~pl.col("fake")))
        functions, teachers = self._learn(known, background)
        rows = in_time(view.release.join(targets, on="user", how="semi", maintain_order="left"))
        told = view.auxiliary[KnownRecords.name]
        found = [
            self._separate(part, background, functions, told)
            for part in rows.partition_by("user", maintain_order=True)
        ]
        chosen, sizes = self.settings, [len(one.row) for one in found]
        about = {
            "targets": len(sizes),
            "people": view.release["user"].n_unique(),
            "learned_from": teachers,
            "functions": len(functions),
            "aggregate": chosen.aggregate,
            "searches_of_a_target": float(np.median(sizes)),
            "cut_short": sum(size == chosen.events for size in sizes),
            "landing_pages_from": landing_from(rows),
            "importances": training.importances(functions, NAMES),
        }
        return TraceClusters(tuple(found), chosen.seed, chosen.aggregate != "majority", about)

    def _learn(
        self, known: pl.DataFrame, background: TermFrequencies
    ) -> tuple[list[training.LinkageFunction], int]:
        """Learn the functions; also say from how many people."""
        chosen = self.settings
        rows = beginnings(in_time(known), chosen.lessons, chosen.functions * training.PEOPLE, chosen.seed)
        read = features.read(rows.drop("fake"), background)
        first = rows[read.searches.first_row]
        user = first["user"].rank("dense").cast(pl.Int64).fill_null(-1).to_numpy()
        lessons = training.lessons(user, first["fake"].to_numpy(), chosen.lessons)
        if not lessons:
            raise NotApplicable("nobody beside the targets has real and fake searches to learn from")
        fakes = chosen.pairs == "all"
        return training.learn(read.relate, lessons, chosen.functions, chosen.seed, fakes), len(lessons)

    def _separate(
        self,
        rows: pl.DataFrame,
        background: TermFrequencies,
        functions: Sequence[training.LinkageFunction],
        told: pl.DataFrame,
    ) -> ClusteredTrace:
        """Score all pairs of one person's searches, and cut."""
        chosen: Any = self.settings
        first = rows.filter(pl.Series(Searches.of(rows).of_row < chosen.events))
        read = features.read(first, background)
        size, relate = len(read), read.relate
        row = read.searches.frame["released_row"].cast(pl.Int64).to_numpy()[read.searches.first_row]
        if chosen.aggregate == "majority":
            scores = pair_scores.majority(relate, size, functions, chosen.clusters, chosen.seed)
        else:
            scores = pair_scores.scores(relate, size, functions, chosen.aggregate)
        cluster = pair_scores.cut(scores, size, chosen.clusters, chosen.seed)
        finer = pair_scores.cut(scores, size, pair_scores.MANY, chosen.seed)
        known = row[np.isin(row, told["released_row"].cast(pl.Int64).to_numpy())]
        return ClusteredTrace(row, cluster, finer, scores, own_cluster(cluster, np.isin(row, known)), known)


def beginnings(rows: pl.DataFrame, real: int, people: int, seed: int) -> pl.DataFrame:
    """Take so many people, drawn, and of each the rows until so many real searches have passed."""
    users = rows.select("user").drop_nulls().unique().sort("user")
    order = np.random.default_rng(seed).permutation(users.height)
    theirs = rows.join(users[order[:people]], on="user", how="semi", maintain_order="left")
    begins = np.zeros(theirs.height, bool)
    begins[Searches.of(theirs).first_row] = True
    counted = theirs.with_columns(_begins=pl.Series(begins) & ~theirs["fake"])
    passed = counted.select(pl.col("_begins").cast(pl.Int64).cum_sum().over("user")).to_series()
    return theirs.filter((passed <= real) & ~((passed == real) & theirs["fake"]))


def own_cluster(cluster: IntArray, told: Any) -> int | None:
    """Return the cluster with the largest share of searches known to be the target's; the first of equals."""
    if not told.any():
        return None
    shares = np.bincount(cluster, weights=told) / np.bincount(cluster)
    return int(np.argmax(shares))


def landing_from(rows: pl.DataFrame) -> str:
    """Return the column that was read for landing pages."""
    if LANDING in rows.columns and rows[LANDING].null_count() < rows.height:
        return "landing"
    return "url" if "url" in rows.columns and rows["url"].null_count() < rows.height else "nothing"

"""`link-background`: who knows some searches or terms of a person looks for labels with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from querycloak.attacks.auxiliary import KnownSearches, Request
from querycloak.attacks.base import Attack, AttackerView, Identification
from querycloak.attacks.link_overlap import drawn, equally_likely, identified
from querycloak.attacks.link_repeat import Grouped, LinkRepeat, by_string, run_em, window
from querycloak.attacks.link_window import reach_of
from querycloak.attacks.release_order import Codes, ReleaseStream, read_stream
from querycloak.attacks.searches import in_terms
from querycloak.dictionary import Dictionary
from querycloak.errors import NotApplicable
from querycloak.kernels.arrays import spans
from querycloak.kernels.overlap import ROOM, pieces
from querycloak.log import IntArray
from querycloak.settings import setting

#: Candidates of a record that count, and labels of a string that are looked at, the likeliest first.
CANDIDATES, MOST_LABELS = 8, 5_000


class LinkBackground(Attack):
    """Knows a few searches or terms of each target, and guesses the label that belongs to their author.

    It looks up the rows with those strings and who may have written them: the row's own label, or,
    against `swap`, what `link-repeat` believes. A label gains with every known string that it goes with,
    the more so the fewer labels that string has. The candidates of a target are the labels that go with
    as many of the known strings as any.

    With `known=terms` it knows so many different terms of each target instead. The candidates are the labels
    whose released histories hold all of them, and each is named with the same probability. Against `km`
    that is at most 1/k for up to m terms, as it promises.

    Limits: no other bound is claimed. Against `cohort` all k members of the target's cohort go with the
    strings about equally often, so the label is found once in k; that the rows are the target's is then
    plain to see, and no label can change that. A string that was rewritten or dropped finds nothing.
    """

    name = "link-background"
    game = "identification"

    @dataclass(frozen=True, kw_only=True)
    class Settings(LinkRepeat.Settings):
        """Settings of `link-background`."""

        known: str = setting(
            "queries", choices=("queries", "terms"), help="what is known: whole searches, or terms"
        )
        queries: int = setting(3, at_least=1, at_most=1000, help="known searches, or terms, of each target")
        targets: int = setting(1000, at_least=1, at_most=100_000, help="people to look for")
        seed: int = setting(0, at_least=0, help="what the choice of targets starts from")

    def requests(self) -> tuple[Request, ...]:
        """Return a request for searches or terms of each target."""
        chosen: Any = self.settings
        unit: Literal["query", "term"] = "term" if chosen.known == "terms" else "query"
        return (KnownSearches(chosen.targets, chosen.queries, unit, seed=chosen.seed),)

    def guess(self, view: AttackerView) -> Identification:
        """Guess the label of each target."""
        samples = view.auxiliary.get(KnownSearches.name, pl.DataFrame())
        if not samples.height:
            raise NotApplicable("the attacker knows no samples")
        chosen: Any = self.settings
        if chosen.known == "terms":
            return _by_terms(samples, view.release, np.random.default_rng(chosen.seed))
        asked = samples.select("user", "query").unique(maintain_order=True)
        found = _scores(asked, self._authors(view, asked["query"]))
        return identified(asked["user"].unique(maintain_order=True), found)

    def _authors(self, view: AttackerView, queries: pl.Series) -> pl.DataFrame:
        """Return the possible authors of the rows of these strings: `query, label, belief`."""
        if not view.never_author:
            return _labels_shown(view.release, queries)
        chosen: Any = self.settings
        k, level = view.assumed_k(chosen.k), view.assumed_level(chosen.level)
        seen = read_stream(view.release, level)
        wanted = seen.strings.encode(queries.unique())
        grouped = _only(by_string(seen), wanted[wanted < seen.string.max(initial=-1) + 1])
        around = window(seen, k, reach_of(chosen.reach, k))
        who, belief = run_em(seen, grouped, around, chosen.spread, chosen.rounds, CANDIDATES)
        return _table(seen, grouped, who, belief)


def _labels_shown(release: pl.DataFrame, queries: pl.Series) -> pl.DataFrame:
    rows = release.select("query", pl.col("user").alias("label")).drop_nulls()
    return rows.join(pl.DataFrame({"query": queries.unique()}), on="query", how="semi").with_columns(
        belief=pl.lit(1.0)
    )


def _only(grouped: Grouped, wanted: IntArray) -> Grouped:
    members, groups = grouped
    wanted = np.sort(wanted)
    sizes = np.diff(groups)[wanted]
    return members[spans(groups[wanted], sizes)], np.concatenate([[0], np.cumsum(sizes)])


def _table(seen: ReleaseStream, grouped: Grouped, who: Codes, belief: Any) -> pl.DataFrame:
    places = np.repeat(grouped[0], who.shape[1])
    label, sure = who[grouped[0]].ravel(), belief[grouped[0]].ravel()
    named = label >= 0
    return pl.DataFrame(
        {
            "query": seen.strings.decode(seen.string[places[named]].astype(np.int64)),
            "label": seen.labels.decode(label[named].astype(np.int64)),
            "belief": sure[named].astype(np.float64),
        }
    )


def _scores(asked: pl.DataFrame, authors: pl.DataFrame) -> pl.DataFrame:
    """Return each target's best label and the number of candidates: `user, label, candidates`."""
    people = max(1, authors["label"].n_unique())
    of_string = (
        authors.group_by("query", "label")
        .agg(belief=pl.col("belief").sum().clip(upper_bound=1.0))
        .sort("query", "belief", "label", descending=[False, True, False])
        .with_columns(weight=(1 + pl.col("belief") * people / pl.col("belief").sum().over("query")).log())
        .group_by("query", maintain_order=True)
        .head(MOST_LABELS)
    )
    pairs = asked.join(of_string, on="query", how="inner")
    each = pairs.group_by("user", "label").agg(score=pl.col("weight").sum(), strings=pl.len())
    ranked = each.sort("user", "score", "label", descending=[False, True, False])
    return ranked.group_by("user", maintain_order=True).agg(
        pl.col("label").first(), candidates=(pl.col("strings") == pl.col("strings").max()).sum()
    )


def _by_terms(samples: pl.DataFrame, release: pl.DataFrame, draws: np.random.Generator) -> Identification:
    """Name all labels that hold every known term of a target."""
    asked = samples.select("user", "term").unique(maintain_order=True)
    rows = release.select("user", thing="query").drop_nulls().unique()
    held = in_terms(rows, asked["term"]).select(label="user", term="thing").unique()
    people, labels, terms = Dictionary(), Dictionary(), Dictionary()
    known = pl.DataFrame({"who": people.encode(asked["user"]), "term": terms.encode(asked["term"])})
    shown = pl.DataFrame({"label": labels.encode(held["label"]), "term": terms.encode(held["term"])})
    found = []
    for pairs in _holding_all(known, shown):
        pair = pairs.sort("who", "label")
        found.append(drawn((pair["who"].to_numpy(), pair["label"].to_numpy()), MOST_LABELS, draws))
    return equally_likely(asked["user"].unique(maintain_order=True), people, labels, found)


def _holding_all(known: pl.DataFrame, shown: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Find the labels that hold all terms of a target, as `who, label`: from the rarest of them down."""
    spread = shown.group_by("term").agg(labels=pl.len().cast(pl.Int64))
    terms = known.join(spread, on="term", how="left").fill_null(0).sort("who", "labels", "term")
    first = terms.unique("who", keep="first", maintain_order=True)
    others = terms.join(first, on=["who", "term"], how="anti").select("who", "term")
    for piece in pieces(first["labels"].to_numpy(), ROOM):
        pairs = first[piece].join(shown, on="term").select("who", "label")
        lacking = pairs.join(others, on="who").join(shown, on=["label", "term"], how="anti")
        yield pairs.join(lacking, on=["who", "label"], how="anti")

"""`link-background`: who knows some searches of a person looks for the label that goes with all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from querycloak.attacks.finding import NotApplicable
from querycloak.attacks.link_repeat import Grouped, LinkRepeat, by_string, settle, window
from querycloak.attacks.link_window import never_own, reach_of
from querycloak.attacks.protocol import Attack, AttackerView, Identification
from querycloak.attacks.seen import Codes, Seen, attackers_k, attackers_level, see
from querycloak.settings import setting

#: Candidates of a record that count, and labels of a string that are looked at, the likeliest first.
CANDIDATES, MOST_LABELS = 8, 5_000


class LinkBackground(Attack):
    """Knows a few searches of each target, and guesses the label that belongs to their author.

    It looks up the rows with those strings and who may have written them: the row's own label, or,
    against `swap`, what `link-repeat` believes. A label gains with every known string that it goes with,
    the more so the fewer labels that string has. The candidates of a target are the labels that go with
    as many of the known strings as any.

    Limits: no bound is claimed. Against `cohort` all k members of the target's cohort go with the strings
    about equally often, so the label is found once in k; that the rows are the target's is then
    plain to see, and no label can change that. A string that was rewritten or dropped finds nothing.
    """

    name = "link-background"
    game = "identification"
    knows = frozenset({"samples"})

    @dataclass(frozen=True, kw_only=True)
    class Settings(LinkRepeat.Settings):
        """Settings of `link-background`."""

        queries: int = setting(3, kind=int, at_least=1, at_most=1000, help="known searches of each target")
        targets: int = setting(1000, kind=int, at_least=1, at_most=100_000, help="people to look for")
        seed: int = setting(0, kind=int, at_least=0, help="what the choice of targets starts from")

    def guess(self, view: AttackerView) -> Identification:
        """Guess the label of each target."""
        samples = view.knowledge.get("samples", pl.DataFrame())
        if not samples.height:
            raise NotApplicable("the attacker knows no samples")
        asked = samples.select("user", "query").unique(maintain_order=True)
        found = _scores(asked, self._authors(view, asked["query"]))
        targets = asked.select("user").unique(maintain_order=True)
        best = targets.join(found, on="user", how="left", maintain_order="left")
        sizes = best["candidates"].fill_null(0).to_numpy().astype(np.int64)
        details = {
            "median_candidates": float(np.median(sizes)),
            "share_with_one_candidate": float(np.mean(sizes == 1)),
            "share_not_found": float(np.mean(sizes == 0)),
        }
        return Identification(best["user"], best["label"], sizes, details)

    def _authors(self, view: AttackerView, queries: pl.Series) -> pl.DataFrame:
        """Say who may have written the rows of these strings: `query, label, belief`."""
        if not never_own(view):
            return _labels_shown(view.release, queries)
        chosen: Any = self.settings
        k, level = attackers_k(view, chosen.k), attackers_level(view, chosen.level)
        seen = see(view.release, level)
        wanted = seen.strings.encode(queries.unique())
        grouped = _only(by_string(seen), wanted[wanted < seen.string.max(initial=-1) + 1])
        around = window(seen, k, reach_of(chosen.reach, k))
        who, belief = settle(seen, grouped, around, chosen.spread, chosen.rounds, CANDIDATES)
        return _table(seen, grouped, who, belief)


def _labels_shown(release: pl.DataFrame, queries: pl.Series) -> pl.DataFrame:
    rows = release.select("query", pl.col("user").alias("label")).drop_nulls()
    return rows.join(pl.DataFrame({"query": queries.unique()}), on="query", how="semi").with_columns(
        belief=pl.lit(1.0)
    )


def _only(grouped: Grouped, wanted: Any) -> Grouped:
    """Keep some groups."""
    members, groups = grouped
    chosen = [members[groups[g] : groups[g + 1]] for g in np.sort(wanted)]
    sizes = np.array([0, *(part.size for part in chosen)], np.int64)
    return np.concatenate([np.empty(0, np.int64), *chosen]), np.cumsum(sizes)


def _table(seen: Seen, grouped: Grouped, who: Codes, belief: Any) -> pl.DataFrame:
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
    """Give each target's best label and the number of candidates: `user, label, candidates`."""
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

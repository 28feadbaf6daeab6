"""`link-overlap`: who knows whole histories looks for the labels that have most in common with each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.attacks.auxiliary import Histories, Request
from querycloak.attacks.base import Attack, AttackerView, Identification
from querycloak.attacks.searches import in_terms
from querycloak.dictionary import Dictionary
from querycloak.errors import NotApplicable
from querycloak.kernels.overlap import Pairs, closest
from querycloak.log import IntArray
from querycloak.settings import setting

#: Of more equally good labels than this, so many are drawn at random: the expected success is the same.
MOST_TIED = 100
#: So that what is put together is never nothing.
_NONE = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


class LinkOverlap(Attack):
    """Knows everybody's whole history, and names the label whose released history has most in common with it.

    This is the record linkage of paper 003. What two histories have in common is counted as it is, with
    repetitions: who asked a thing three times shares two of them with a label that has it twice. Nothing is
    divided by the size of a history. Of several labels that are equally good each is named with the same
    probability, so that t of them, one of them right, count 1/t. A history that has nothing in common with
    any label is not linked, and counts as a miss. With `on=categories` only interests are known.

    Paper 003 goes from released histories to people; this goes from people to labels, as the game
    asks. The function `querycloak.measures.record_linkage` goes the paper's way.

    Limits: no bound is claimed. Only what both histories spell alike counts. Where everybody has much in
    common with everybody (`on=categories`) hardly anything can be skipped, and the time grows with labels
    times people; so in a large log `targets` of them are drawn.
    """

    name = "link-overlap"
    game = "identification"
    columns = frozenset({"user"})

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `link-overlap`."""

        on: str = setting(
            "queries",
            choices=("queries", "terms", "categories"),
            help="what histories are compared by: whole queries, their terms, or categories",
        )
        targets: int = setting(
            10_000, at_least=0, help="people to look for, at most, drawn at random; 0: all"
        )
        seed: int = setting(0, at_least=0, help="what the attack's draws start from")

    def requests(self) -> tuple[Request, ...]:
        """Return a request for whole histories."""
        chosen: Any = self.settings
        return (Histories(chosen.targets, chosen.seed),)

    def guess(self, view: AttackerView) -> Identification:
        """Name the best labels of each person."""
        chosen: Any = self.settings
        if Histories.name not in view.auxiliary:
            raise NotApplicable("the attacker knows no histories")
        draws = np.random.default_rng(chosen.seed)
        known = view.auxiliary[Histories.name]
        people, labels, things = Dictionary(), Dictionary(), Dictionary()
        looked_for = coded(contents(known, chosen.on, "history"), people, things)
        shown = coded(contents(view.release, chosen.on, "release"), labels, things)
        everyone = known["user"].drop_nulls().unique(maintain_order=True)
        found = [drawn(tied, MOST_TIED, draws) for tied in closest(looked_for, shown)]
        return equally_likely(everyone, people, labels, found)


def contents(frame: pl.DataFrame, on: str, side: str) -> pl.DataFrame:
    """Return what each history holds, one `user, thing` for each time that it holds it."""
    column = "category" if on == "categories" else "query"
    if column not in frame.columns or frame[column].null_count() == frame.height:
        raise NotApplicable(f"the {side} has no {column}")
    rows = frame.select("user", thing=pl.col(column)).drop_nulls()
    return in_terms(rows) if on == "terms" else rows


def coded(rows: pl.DataFrame, owners: Dictionary, things: Dictionary) -> Pairs:
    """Return the codes of `user, thing`."""
    return owners.encode(rows["user"]), things.encode(rows["thing"])


def drawn(pairs: Pairs, most: int, draws: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    """Keep at most so many labels of each history, drawn at random where there are more, and count them all.

    Pairs come sorted by history; the third column says how many labels the history had.
    """
    who, label = pairs
    begins = np.flatnonzero(np.diff(who, prepend=-1))
    sizes = np.diff(begins, append=who.size)
    many = np.repeat(sizes, sizes)
    if sizes.max(initial=0) <= most:
        return who, label, many
    order = np.lexsort((draws.random(who.size), who))
    kept = np.sort(order[np.arange(who.size) - np.repeat(begins, sizes) < most])
    return who[kept], label[kept], many[kept]


def equally_likely(
    everyone: pl.Series, people: Dictionary, labels: Dictionary, found: Sequence[tuple[IntArray, ...]]
) -> Identification:
    """Guess all labels of each person with equal weight; `found` is what `drawn` returned, in pieces."""
    who, label, many = (np.concatenate(part) for part in zip(_NONE, *found, strict=True))
    table = {"user": people.decode(who), "label": labels.decode(label), "candidates": many}
    return identified(
        everyone, pl.DataFrame(table).group_by("user").agg("label", pl.col("candidates").first())
    )


def identified(everyone: pl.Series, found: pl.DataFrame) -> Identification:
    """Guess what was found of each person, as `user, label, candidates`."""
    each = pl.DataFrame({"user": everyone}).join(found, on="user", how="left", maintain_order="left")
    sizes = each["candidates"].fill_null(0).to_numpy().astype(np.int64)
    return Identification(each["user"], each["label"], sizes, figures(sizes))


def figures(sizes: IntArray) -> dict[str, Any]:
    """Return statistics of the number of candidates: median, and shares with one and with none."""
    some = sizes[sizes > 0]
    return {
        "median_candidates": float(np.median(sizes)),
        "share_with_one_candidate": float(np.mean(sizes == 1)),
        "share_not_found": float(np.mean(sizes == 0)),
        "candidates": {
            "smallest": int(some.min()) if some.size else None,
            "empty": float(np.mean(sizes == 0)),
            "median": float(np.median(some)) if some.size else None,
        },
    }

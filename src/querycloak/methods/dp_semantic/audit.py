"""Audits of replaced queries: no word of the original remains."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import faults
from querycloak.errors import QueryCloakError
from querycloak.guarantee import Audit, NotCheckable

#: Returns the words of every concept that may be shown, with its category.
Words = Callable[[], dict[str, str]]
#: Returns the same as a table.
Table = Callable[[], pl.DataFrame]


def audits(words: Words | None, limit: int | None) -> tuple[Audit, ...]:
    """Return the audits: queries are lists of known words with their category, at most `limit` a label."""
    table = None if words is None else cache(partial(_known, words))  # once for all audits and parts
    words_fit, categories_fit = partial(_made_of, table), partial(_categories_fit, table)
    found = [
        Audit("every released query consists of words of the domain", words_fit, on_parts=True),
        Audit("every category is that of the first concept of its query", categories_fit, on_parts=True),
        Audit("concepts are drawn with the stated probabilities", _unseen),
    ]
    if limit is not None:
        few = partial(_at_most, limit, words is not None)
        found.append(Audit(f"no label has more than {limit} concepts", few))
    return tuple(found)


def _unseen(evidence: Evidence) -> str:
    raise NotCheckable("one release does not show probabilities; `verify --secret-file` repeats every draw")


def _listed(evidence: Evidence) -> pl.LazyFrame:
    """Return one line for each concept of each released query."""
    if evidence.rewritten_later:
        raise NotCheckable("a later method rewrites queries")
    return evidence.text().with_columns(word=pl.col("query").fill_null("").str.split(", ")).explode("word")


def _made_of(table: Table | None, evidence: Evidence) -> str:
    if table is None:
        raise NotCheckable("words of the original were put back between those of the domain")
    strange = _listed(evidence).filter(~pl.col("word").is_in(table()["word"].implode()))
    return faults(strange.unique("released_row"), "hold other words")


def _categories_fit(table: Table | None, evidence: Evidence) -> str:
    if table is None:
        raise NotCheckable("where one concept ends and the next begins cannot be told")
    shown = _listed(evidence)
    if "category" not in shown.collect_schema():
        return ""
    first = shown.group_by("released_row", maintain_order=True).first()
    beside = first.join(table().lazy(), on="word", how="left")
    return faults(beside.filter(pl.col("category").ne_missing(pl.col("own"))), "show another category")


def _known(words: Words) -> pl.DataFrame:
    """Return the words of the domain with their categories. Raise NotCheckable without the taxonomy."""
    try:
        known = words()
    except QueryCloakError:
        raise NotCheckable("the taxonomy is not here: a certificate names no folders") from None
    return pl.DataFrame({"word": list(known), "own": list(known.values())}).sort("word")


def _at_most(limit: int, listed: bool, evidence: Evidence) -> str:
    if not listed:
        raise NotCheckable("where one concept ends and the next begins cannot be told")
    if "user" not in evidence.text().collect_schema():
        raise NotCheckable("the release has no users")
    # rows of one search show one draw each, and only the truth file distinguishes them
    once = _listed(evidence)
    if evidence.truth is None or evidence.original is None:
        raise NotCheckable("needs the original log and the truth file: clicked rows repeat their search")
    rows = once.join(evidence.placed("released_row").lazy(), on="released_row")
    first = rows.group_by("head").agg(pl.col("released_row").min())
    counted = rows.join(first, on=["head", "released_row"]).group_by("user").agg(n=pl.len())
    many = counted.filter(pl.col("n") > limit)
    return faults(rows.join(many, on="user", how="semi").unique("released_row"), "are of labels with more")

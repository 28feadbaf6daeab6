"""Audits of queries that were replaced: nothing of the old wording is left, nor what was clicked when."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from querycloak.errors import QueryCloakError
from querycloak.guarantees import Audit, Evidence, NotCheckable
from querycloak.guarantees.lineage import faults

_HOUR = 3_600_000_000  # microseconds
#: Gives the words of every concept that may be shown, with its category.
Words = Callable[[], dict[str, str]]


def audits(words: Words | None, limit: int | None, time: str) -> tuple[Audit, ...]:
    """Test that queries are lists of known words, not too many a label, and that other columns are empty."""
    found = [
        Audit("every released query is made of words of the domain only", _made_of(words), on_parts=True),
        Audit("no clicked page and no rank is shown", _nothing_clicked, on_parts=True),
        Audit(
            "times are empty or whole hours", _whole_hours if time == "coarsen" else _no_times, on_parts=True
        ),
        Audit("the category is that of the first concept shown", _categories_fit(words), on_parts=True),
    ]
    found.append(Audit("replacements are drawn as promised", _unseen))
    if limit is not None:
        found.append(Audit(f"no label shows more than {limit} concepts", _at_most(limit, words is not None)))
    return tuple(found)


def _unseen(evidence: Evidence) -> str:
    raise NotCheckable("one release cannot show how likely others were; the secret makes every draw again")


def _listed(evidence: Evidence) -> pl.LazyFrame:
    """Give one line for each concept of each released query."""
    if evidence.rewritten_later:
        raise NotCheckable("a later method rewrites queries")
    return evidence.text().with_columns(word=pl.col("query").fill_null("").str.split(", ")).explode("word")


def _made_of(words: Words | None) -> Callable[[Evidence], str]:
    def run(evidence: Evidence) -> str:
        if words is None:
            raise NotCheckable("words of the original were put back between those of the domain")
        known = pl.Series(sorted(_known(words)), dtype=pl.String)
        strange = _listed(evidence).filter(~pl.col("word").is_in(known.implode()))
        return faults(strange.unique("released_row"), "hold other words")

    return run


def _nothing_clicked(evidence: Evidence) -> str:
    shown = evidence.text()
    names = [name for name in ("url", "rank") if name in shown.collect_schema()]
    if not names:
        return ""
    some = pl.any_horizontal(*(pl.col(n).is_not_null() & (pl.col(n).cast(pl.String) != "") for n in names))
    return faults(shown.filter(some), "show what was clicked")


def _whole_hours(evidence: Evidence) -> str:
    shown = evidence.text()
    if "time" not in shown.collect_schema():
        return ""
    return faults(shown.filter(pl.col("time").to_physical() % _HOUR != 0), "show a finer time")


def _no_times(evidence: Evidence) -> str:
    shown = evidence.text()
    if "time" not in shown.collect_schema():
        return ""
    return faults(shown.filter(pl.col("time").is_not_null()), "show a time")


def _categories_fit(words: Words | None) -> Callable[[Evidence], str]:
    def run(evidence: Evidence) -> str:
        if words is None:
            raise NotCheckable("where one concept ends and the next begins cannot be told")
        shown = _listed(evidence)
        if "category" not in shown.collect_schema():
            return ""
        known = _known(words)
        table = pl.LazyFrame({"word": list(known), "own": list(known.values())})
        first = shown.group_by("released_row", maintain_order=True).first()
        other = first.join(table, on="word", how="left").filter(pl.col("category").ne_missing(pl.col("own")))
        return faults(other, "show another category")

    return run


def _known(words: Words) -> dict[str, str]:
    try:
        return words()
    except QueryCloakError:
        raise NotCheckable("the taxonomy is not here: a certificate names no folders") from None


def _at_most(limit: int, listed: bool) -> Callable[[Evidence], str]:
    def run(evidence: Evidence) -> str:
        if not listed:
            raise NotCheckable("where one concept ends and the next begins cannot be told")
        if "user" not in evidence.text().collect_schema():
            raise NotCheckable("the release has no users")
        # rows of one search show one draw each, and without the truth nobody can tell them apart
        once = _listed(evidence)
        if evidence.truth is None or evidence.original is None:
            raise NotCheckable("needs the original log and the truth file: clicked rows repeat their search")
        head = evidence.searches.head
        place = evidence.traced.select("released_row", "place").collect()
        search = pl.Series("search", head[place["place"].to_numpy()])
        rows = once.join(place.with_columns(search).lazy(), on="released_row")
        first = rows.group_by("search").agg(pl.col("released_row").min())
        counted = rows.join(first, on=["search", "released_row"]).group_by("user").agg(n=pl.len())
        many = counted.filter(pl.col("n") > limit)
        return faults(
            rows.join(many, on="user", how="semi").unique("released_row"), "are of labels with more"
        )

    return run

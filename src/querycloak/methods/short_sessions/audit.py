"""Audits of `short-sessions`: how many people, how many searches, how many days, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import faults, queries_unchanged
from querycloak.audits.users import queries_too_early, replayed, too_early
from querycloak.guarantee import Audit, NotCheckable

_TERM: Final = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*"
_DAY: Final = 86_400 * 1_000_000


@dataclass(frozen=True)
class Limits:
    """What is guaranteed: users, gap between sessions in microseconds, searches of a label, terms or queries.

    `daily`: days are released one by one, so users count whose own searches were suppressed.
    """

    k: int
    gap: int
    most: int
    terms: bool
    daily: bool

    @property
    def thing(self) -> str:
        """What must be of k users."""
        return "term" if self.terms else "query"


def _short(limits: Limits, evidence: Evidence) -> str:
    """Count what a reader can tell apart under each label: different texts and times, and days."""
    shown = evidence.text()
    times = [name for name in ("time",) if name in shown.collect_schema().names()]
    searches = pl.struct("query", *times).n_unique().over("user")
    many = shown.filter(searches > limits.most)
    long = faults(many, f"are under a label of more than {limits.most} searches")
    if long or not times:
        return long
    days = pl.col("time").dt.date().n_unique().over("user")
    return faults(shown.filter(days > 1), "are under a label that continues after midnight")


def _in_batches(evidence: Evidence) -> str:
    fault = _order_fault(evidence)
    if fault and evidence.later:
        raise NotCheckable("later methods may have changed the order of rows")
    return fault


def _order_fault(evidence: Evidence) -> str:
    """Check that days follow each other, and that the rows of a label are adjacent."""
    shown = evidence.text().sort("released_row").with_row_index("_at")
    span = pl.col("_at").max().over("user") - pl.col("_at").min().over("user")
    if torn := faults(
        shown.filter(span >= pl.len().over("user")), "are not adjacent to others of their label"
    ):
        return torn
    if "time" not in shown.collect_schema().names():
        return ""
    day = pl.col("time").dt.date()
    return faults(shown.filter(day < day.cum_max()), "come after rows of a later day")


def _things(limits: Limits, shown: pl.LazyFrame) -> pl.LazyFrame:
    """Return each row with its query, or with each of its terms, as `thing`."""
    if not limits.terms:
        return shown.with_columns(thing="query")
    terms = pl.col("query").str.to_lowercase().str.extract_all(_TERM)
    return shown.with_columns(thing=terms).explode("thing").drop_nulls("thing")


def _labels(limits: Limits, evidence: Evidence) -> str:
    """Count the labels of each query or term: each is one person's, and a person may have several."""
    things = _things(limits, evidence.text().select("released_row", "user", "query"))
    rare = things.filter(pl.col("user").n_unique().over("thing") < limits.k).unique("released_row")
    fault = faults(rare, f"show a {limits.thing} that stands under fewer than {limits.k} labels")
    if fault and evidence.later:
        raise evidence.undecided(f"later methods may have removed rows of a {limits.thing} of enough users")
    if fault and limits.daily:
        raise evidence.undecided("users of earlier days count too, and their searches may be suppressed")
    return fault


def _check_readable(evidence: Evidence) -> None:
    """Raise NotCheckable if other methods changed queries: then nobody asked what is released."""
    if evidence.rewritten_earlier or evidence.rewritten_later:
        raise NotCheckable("another method of this release rewrites queries")


def _users(limits: Limits, evidence: Evidence) -> str:
    """Count the users who had asked each query, or used each term, before the release."""
    _check_readable(evidence)
    if not limits.terms:
        early = queries_too_early(limits.k, evidence)
        return faults(early, f"were released before {limits.k} users had asked their query")
    assert evidence.original is not None
    moments = evidence.traced.select("released_row", "released_after")
    shown = evidence.text().select("released_row", "query").join(moments, on="released_row")
    asked = replayed(evidence.original).select("row", "read", person="user")
    uses = _things(limits, evidence.asked_texts().join(asked, on="row"))
    rare = too_early(limits.k, _things(limits, shown), uses).unique("released_row")
    return faults(rare, f"have a term that fewer than {limits.k} users had used before")


def _one_session(limits: Limits, evidence: Evidence) -> str:
    """Cut the original into sessions again: all rows of a label must be of one, and few searches."""
    rows = evidence.placed("released_row", "user").lazy()
    beside = rows.join(_sessions(limits, evidence), on="place", how="left")
    several = pl.col("session").n_unique().over("user") > 1
    if torn := faults(beside.filter(several), "are under a label of several sessions or users"):
        return torn
    many = pl.col("head").n_unique().over("user") > limits.most
    return faults(beside.filter(many), f"are under a label of more than {limits.most} searches")


def _sessions(limits: Limits, evidence: Evidence) -> pl.LazyFrame:
    """Number the sessions of the original, by `place`: a silence, midnight or another person begins one."""
    asked = evidence.asked.select("user", "time").with_row_index("place").cast({"place": pl.Int64})
    moment = pl.col("time").to_physical()
    rows = asked.lazy().with_columns(moment=moment, day=moment.floordiv(_DAY)).sort("user", "moment")
    other = pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in ("user", "day"))
    new = other | (pl.col("moment").diff() > limits.gap)
    return rows.select("place", session=new.fill_null(value=True).cum_sum())


def _unchanged(evidence: Evidence) -> str:
    _check_readable(evidence)
    return queries_unchanged(evidence)


def audits(limits: Limits) -> tuple[tuple[Audit, ...], tuple[Audit, ...]]:
    """Return the audits of `short-sessions`: about the users of each text, and about labels."""

    def of(run: Callable[[Limits, Evidence], str]) -> Callable[[Evidence], str]:
        return lambda evidence: run(limits, evidence)

    k, most, thing = limits.k, limits.most, limits.thing
    unchanged = Audit("every released query is the one that was asked", _unchanged, True, on_parts=True)
    of_users = (
        Audit(f"each released {thing} stands under at least {k} labels", of(_labels)),
        Audit(f"each released {thing} is of at least {k} users before its release", of(_users), True),
        *(() if limits.terms else (unchanged,)),
    )
    of_labels = (
        Audit(
            f"no label has more than {most} searches or continues after midnight", of(_short), on_parts=True
        ),
        Audit("days follow each other, and the rows of a label are adjacent", _in_batches, on_parts=True),
        Audit(f"a label is of one session of one user with at most {most} searches", of(_one_session), True),
    )
    return of_users, of_labels

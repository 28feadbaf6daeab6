"""Audits of `short-sessions`: how many people, how many searches, how many days, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import faults, queries_unchanged
from querycloak.audits.users import queries_too_early, too_early
from querycloak.guarantee import Audit, NotCheckable

_TERM: Final = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*"
_DAY: Final = 86_400 * 1_000_000
_UNIT: Final = {"hour": "1h", "day": "1d"}


@dataclass(frozen=True)
class Limits:
    """What was promised: people, silence in microseconds, searches, by terms or not, how fine times are.

    `daily` says that days left one by one, so that people counted whose own searches had stayed behind.
    """

    k: int
    gap: int
    most: int
    terms: bool
    time: str
    daily: bool

    @property
    def thing(self) -> str:
        """What must be of k people."""
        return "term" if self.terms else "query"


def _coarse(limits: Limits, evidence: Evidence) -> str:
    shown = evidence.text()
    if "time" not in shown.collect_schema().names():
        return ""
    finer = pl.col("time").is_not_null()
    if limits.time in _UNIT:
        finer &= pl.col("time") != pl.col("time").dt.truncate(_UNIT[limits.time])
    return faults(shown.filter(finer), "show a time that is finer than was promised")


def _short(limits: Limits, evidence: Evidence) -> str:
    """Count what a reader can tell apart under each label: different texts and times, and days."""
    shown = evidence.text()
    times = [name for name in ("time",) if name in shown.collect_schema().names()]
    searches = pl.struct("query", *times).n_unique().over("user")
    many = shown.filter(searches > limits.most)
    long = faults(many, f"stand under a label of more than {limits.most} searches")
    if long or not times:
        return long
    days = pl.col("time").dt.date().n_unique().over("user")
    return faults(shown.filter(days > 1), "stand under a label that goes over midnight")


def _in_batches(evidence: Evidence) -> str:
    """Check that days follow each other, and that the rows of a label stand together."""
    if evidence.later:
        raise NotCheckable("later methods may have taken rows out or brought them into another order")
    shown = evidence.text().sort("released_row").with_row_index("_at")
    span = pl.col("_at").max().over("user") - pl.col("_at").min().over("user")
    if torn := faults(shown.filter(span >= pl.len().over("user")), "stand apart from others of their label"):
        return torn
    if "time" not in shown.collect_schema().names():
        return ""
    day = pl.col("time").dt.date()
    return faults(shown.filter(day < day.cum_max()), "stand behind a later day's")


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
        why = f"later methods may have removed rows of a {limits.thing} that enough people asked"
        raise NotCheckable(why)
    if fault and limits.daily:
        why = "people of earlier days count too, and what they asked then may have stayed behind"
        raise NotCheckable(why)
    return fault


def _no_user_ids(evidence: Evidence) -> str:
    if evidence.original is None:
        raise NotCheckable("needs the original log")
    known = evidence.original.select("user").unique()
    return faults(evidence.release.join(known, on="user", how="semi"), "carry a user id of the log")


def _check_readable(evidence: Evidence) -> None:
    """Raise NotCheckable if other methods changed queries: then nobody asked what is released."""
    if evidence.rewritten_earlier or evidence.rewritten_later:
        raise NotCheckable("another method of this release rewrites queries")


def _people(limits: Limits, evidence: Evidence) -> str:
    """Count the people behind each query before it left; by terms, those behind the released rows."""
    _check_readable(evidence)
    early = queries_too_early(limits.k, evidence)
    if not limits.terms:
        return faults(early, f"left before {limits.k} people had asked their query")
    told = evidence.traced.select("released_row", "released_after", person="original_user")
    shown = evidence.text().select("released_row", "query").join(told, on="released_row")
    things = _things(limits, shown).with_columns(read="released_after")
    rare = too_early(limits.k, things, things).unique("released_row")
    few = rare.join(early, on="released_row", how="semi")
    fault = faults(few, f"show a term that fewer than {limits.k} people used in released searches")
    if fault and (limits.daily or evidence.later):
        why = "people count whose own searches stayed behind, and only their texts would show it"
        raise NotCheckable(why)
    return fault


def _one_session(limits: Limits, evidence: Evidence) -> str:
    """Cut the original into sessions again: all rows of a label must be of one, and few searches."""
    rows = evidence.placed("released_row", "user").lazy()
    beside = rows.join(_sessions(limits, evidence), on="place", how="left")
    several = pl.col("session").n_unique().over("user") > 1
    if torn := faults(beside.filter(several), "stand under a label of several sessions or people"):
        return torn
    many = pl.col("head").n_unique().over("user") > limits.most
    return faults(beside.filter(many), f"stand under a label of more than {limits.most} searches")


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


def audits(limits: Limits) -> tuple[Audit, ...]:
    """Return the audits of `short-sessions`: first those that need the release only."""

    def of(run: Callable[[Limits, Evidence], str]) -> Callable[[Evidence], str]:
        return lambda evidence: run(limits, evidence)

    k, most, thing = limits.k, limits.most, limits.thing
    fine = "no time is shown" if limits.time == "drop" else f"times are no finer than the {limits.time}"
    found = (
        Audit(fine, of(_coarse), on_parts=True),
        Audit(f"no label has more than {most} searches or goes over midnight", of(_short), on_parts=True),
        Audit("days follow each other, and the rows of a label stand together", _in_batches, on_parts=True),
        Audit(f"each released {thing} stands under at least {k} labels", of(_labels)),
        Audit("no label is a user id of the log", _no_user_ids),
        Audit(f"each released {thing} was of at least {k} people before it left", of(_people), True),
        Audit(f"a label is one person's, of one session and at most {most} searches", of(_one_session), True),
    )
    whole = Audit("every released query is the one that was asked", _unchanged, True, on_parts=True)
    return found if limits.terms else (*found, whole)

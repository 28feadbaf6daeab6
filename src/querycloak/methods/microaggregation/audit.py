"""Audits of microaggregation: every released history, in all of its columns, is shared by k users."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Final

import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import faults
from querycloak.guarantee import Audit, NotCheckable

#: Redrawn in each process, so that no log can be prepared in which two histories have the same hash.
_SEEDS: Final = (secrets.randbits(63), secrets.randbits(63))


def audits(k: int, diversity: int = 1, closeness: float = 1.0) -> tuple[Audit, ...]:
    """Return the audits: each history has k labels in the release and, by the ground truth, k users."""
    found = [
        Audit(f"each released history, all columns, is shared by at least {k} labels", partial(_shared, k)),
        Audit(f"these labels stand for at least {k} users", partial(_by_people, k), needs_truth=True),
    ]
    if diversity > 1:
        found.append(Audit(f"each history has at least {diversity} topics", partial(_diverse, diversity)))
    if closeness < 1:
        check = f"each history's topics are within {closeness:g} of all"
        found.append(Audit(check, partial(_close, closeness)))
    return tuple(found)


def _topics(evidence: Evidence) -> pl.DataFrame:
    """Return the number of rows of each label by the first level of their category."""
    shown = evidence.text()
    if "category" not in shown.collect_schema():
        raise NotCheckable("the release has no categories")
    topic = pl.col("category").str.split("/").list.first()
    return shown.group_by("user", topic=topic).len().collect()


def _of_labels(evidence: Evidence, users: pl.DataFrame, what: str) -> str:
    rows = evidence.text().join(users.lazy().select("user"), on="user", how="semi", nulls_equal=True)
    return faults(rows, what)


def _diverse(least: int, evidence: Evidence) -> str:
    topics = pl.col("topic").drop_nulls().n_unique()
    few = _topics(evidence).group_by("user").agg(n=topics).filter(pl.col("n") < least)
    return _of_labels(evidence, few, f"are of histories with fewer than {least} topics")


def _close(most: float, evidence: Evidence) -> str:
    counts = _topics(evidence)
    overall = counts.group_by("topic").agg(pl.col("len").sum())
    whole = overall.with_columns(all=pl.col("len") / pl.col("len").sum()).select("topic", "all")
    own = counts.with_columns(own=pl.col("len") / pl.col("len").sum().over("user"))
    # half of the sum of differences is 1 less the sum of common shares
    both = own.join(whole, on="topic", nulls_equal=True).group_by("user")
    shared = both.agg(apart=1 - pl.min_horizontal("own", "all").sum())
    far = shared.filter(pl.col("apart") > most + 1e-9)
    return _of_labels(evidence, far, f"are of histories further away than {most:g}")


def histories(evidence: Evidence) -> pl.DataFrame:
    """Return `user, history`: equal histories, as multisets of rows in any order, have equal numbers."""
    shown = evidence.text()
    names = shown.collect_schema().names()
    if "user" not in names:
        raise NotCheckable("the release has no users")
    columns = [pl.col(name) for name in names if name not in ("user", "released_row")]
    rows = [pl.struct(columns).hash(seed).cast(pl.Decimal(38, 0)) for seed in _SEEDS]
    sums = [row.sum().alias(f"sum{place}") for place, row in enumerate(rows)]
    found = shown.group_by("user", maintain_order=True).agg(*sums, size=pl.len())
    numbers = pl.struct("sum0", "sum1", "size").rank("dense").alias("history")
    return found.select("user", numbers).collect()


def _shared(k: int, evidence: Evidence) -> str:
    few = histories(evidence).filter(pl.col("user").n_unique().over("history") < k)
    return _of_labels(evidence, few, f"are of histories that fewer than {k} labels have")


def _by_people(k: int, evidence: Evidence) -> str:
    assert evidence.truth is not None
    people = evidence.truth.select("released_row", "original_user").collect()
    rows = evidence.text().select("released_row", "user").collect()
    owned = rows.join(people, on="released_row", how="left")
    who = owned.join(histories(evidence), on="user", nulls_equal=True)
    behind = pl.col("original_user").drop_nulls().n_unique().over("history")
    few = who.filter((behind < k) | pl.col("original_user").is_null())
    return faults(few.lazy(), f"are of histories that fewer than {k} users share")

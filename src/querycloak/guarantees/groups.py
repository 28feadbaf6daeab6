"""Audits of microaggregation: every released history, in all of its columns, is that of k people."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

import polars as pl

from querycloak.guarantees import Audit, Evidence, NotCheckable
from querycloak.guarantees.lineage import faults

#: Drawn anew in each process, so that nobody can plan for two histories to look the same.
_SEEDS: Final = (secrets.randbits(63), secrets.randbits(63))


def audits(k: int, diversity: int = 1, closeness: float = 1.0) -> tuple[Audit, ...]:
    """Test, on the release alone, that each history is shared, and with the truth, that by k people."""
    found = [
        Audit(f"each released history, all columns, is shared by at least {k} labels", _shared(k)),
        Audit(f"and behind those labels are at least {k} people", _by_people(k), needs_truth=True),
    ]
    if diversity > 1:
        found.append(Audit(f"each history has at least {diversity} topics", _diverse(diversity)))
    if closeness < 1:
        found.append(Audit(f"each history's topics are within {closeness:g} of all", _close(closeness)))
    return tuple(found)


def _topics(evidence: Evidence) -> pl.DataFrame:
    """Count the rows of each label by the first name of their category."""
    shown = evidence.text()
    if "category" not in shown.collect_schema():
        raise NotCheckable("the release has no categories")
    topic = pl.col("category").str.split("/").list.first()
    return shown.group_by("user", topic=topic).len().collect()


def _of_labels(evidence: Evidence, users: pl.DataFrame, what: str) -> str:
    rows = evidence.text().join(users.lazy().select("user"), on="user", how="semi", nulls_equal=True)
    return faults(rows, what)


def _diverse(least: int) -> Callable[[Evidence], str]:
    def run(evidence: Evidence) -> str:
        topics = pl.col("topic").drop_nulls().n_unique()
        few = _topics(evidence).group_by("user").agg(n=topics).filter(pl.col("n") < least)
        return _of_labels(evidence, few, f"are of histories with fewer than {least} topics")

    return run


def _close(most: float) -> Callable[[Evidence], str]:
    def run(evidence: Evidence) -> str:
        counts = _topics(evidence)
        everybody = counts.group_by("topic").agg(pl.col("len").sum())
        whole = everybody.with_columns(all=pl.col("len") / pl.col("len").sum()).select("topic", "all")
        own = counts.with_columns(own=pl.col("len") / pl.col("len").sum().over("user"))
        # half of all differences: what is common to both is the rest
        shared = (
            own.join(whole, on="topic", nulls_equal=True)
            .group_by("user")
            .agg(apart=1 - pl.min_horizontal("own", "all").sum())
        )
        far = shared.filter(pl.col("apart") > most + 1e-9)
        return _of_labels(evidence, far, f"are of histories further away than {most:g}")

    return run


def histories(evidence: Evidence) -> pl.DataFrame:
    """Give `user, history`: equal histories, as multisets of rows in any order, have equal numbers."""
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


def _shared(k: int) -> Callable[[Evidence], str]:
    def run(evidence: Evidence) -> str:
        few = histories(evidence).filter(pl.col("user").n_unique().over("history") < k)
        rows = evidence.text().join(few.lazy(), on="user", how="semi", nulls_equal=True)
        return faults(rows, f"are of histories that fewer than {k} labels have")

    return run


def _by_people(k: int) -> Callable[[Evidence], str]:
    def run(evidence: Evidence) -> str:
        beside = evidence.truth
        assert beside is not None
        people = beside.select("released_row", "original_user").collect()
        rows = evidence.text().select("released_row", "user").collect()
        who = rows.join(people, on="released_row", how="left").join(
            histories(evidence), on="user", nulls_equal=True
        )
        behind = pl.col("original_user").drop_nulls().n_unique().over("history")
        few = who.filter((behind < k) | pl.col("original_user").is_null())
        return faults(few.lazy(), f"are of histories behind which are fewer than {k} people")

    return run

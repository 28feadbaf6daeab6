"""Audits of `cohort`: who is in one, and whether labels really tell nothing."""

from __future__ import annotations

import math

import polars as pl

from querycloak.guarantees import Audit, Evidence, NotCheckable
from querycloak.guarantees.lineage import shown_after_erasure
from querycloak.guarantees.swapping import one_label

#: Chance that a test of uniformity alarms although all is well.
FALSE_ALARM = 1e-6
#: The two-sided normal quantile of a third of it: three tests share the chance.
_Z = 5.11
#: A cohort's number in the truth counts its generations in multiples of this: members change by erasures.
GENERATIONS = 1 << 32


def _searches(evidence: Evidence) -> pl.LazyFrame:
    """Give each released search once, with its author, the user behind its label, and its cohort."""
    if "released searches" not in evidence.memo:
        evidence.memo["released searches"] = _traced_searches(evidence)
    rows: pl.DataFrame = evidence.memo["released searches"]
    return rows.lazy()


def _traced_searches(evidence: Evidence) -> pl.DataFrame:
    rows = evidence.traced
    if "cohort" not in rows.collect_schema().names():
        raise NotCheckable("the truth names no cohorts (one cohort per topic, or another method's truth)")
    found = rows.filter(pl.col("place") >= 0).rename({"original_user": "author"}).collect()
    place = found["place"].to_numpy()
    first = found.filter(pl.Series(evidence.searches.head[place] == place))
    return first.select("released_row", "cohort", "cohort_size", "query", "user", "author")


def _one_cohort_each(k: int, evidence: Evidence) -> str:
    """Check that everyone is in one cohort only, that it has k members, and that labels are members'.

    After an erasure a cohort has other members; what left it before was drawn from the earlier ones.
    """
    if late := shown_after_erasure(evidence):
        return late
    rows = _searches(evidence)
    people = pl.concat(
        [rows.select("cohort", person="author"), rows.select("cohort", person="user")]
    ).unique()
    seats = people.select("person", cohort=pl.col("cohort") % GENERATIONS).unique()
    torn = seats.group_by("person").len().filter(pl.col("len") > 1).collect().height
    if torn:
        return f"{torn:,} people are in more than one cohort"
    seen = people.group_by("cohort").len().join(_sizes(rows), on="cohort").collect()
    if small := seen.filter(pl.col("members") < k).height:
        return f"{small:,} cohorts have fewer than {k} members"
    crowded = seen.filter(pl.col("len") > pl.col("members")).height
    return f"{crowded:,} cohorts show more people than they have members" if crowded else ""


def _sizes(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Give the seats of each cohort, members of earlier releases included."""
    return rows.group_by("cohort").agg(members=pl.col("cohort_size").max())


def _count() -> pl.Expr:
    """Count rows in numbers whose squares fit: those of polars' own counts do not."""
    return pl.len().cast(pl.Int64)


def _far(found: float, expected: float, variance: float) -> bool:
    return abs(found - expected) > _Z * math.sqrt(variance) + 1 if variance > 0 else abs(found - expected) > 1


def _own_label(evidence: Evidence) -> str:
    """Test that a record carries its author's own label with probability 1 / members."""
    rows = _searches(evidence)
    own = rows.join(_sizes(rows), on="cohort").select(
        hit=(pl.col("user") == pl.col("author")).sum(),
        expected=(1 / pl.col("members")).sum(),
        variance=(1 / pl.col("members") * (1 - 1 / pl.col("members"))).sum(),
    )
    hit, expected, variance = own.collect().row(0)
    if not _far(hit, expected or 0.0, variance or 0.0):
        return ""
    return f"{hit:,} records carry their author's own label; {expected:,.0f} were to be expected"


def _even_labels(evidence: Evidence) -> str:
    """Test by a sum of squares that within a cohort every label is drawn alike."""
    rows = _searches(evidence)
    counts = rows.group_by("cohort", "user").agg(len=_count())
    squares = counts.group_by("cohort").agg(n=pl.col("len").sum(), squares=(pl.col("len") ** 2).sum())
    table = squares.join(_sizes(rows), on="cohort").filter(pl.col("n") > 1).collect()
    n, m, found = (table[name].cast(pl.Float64) for name in ("n", "members", "squares"))
    expected = float((n + n * (n - 1) / m).sum())
    variance = float((2 * n * (n - 1) / m * (1 - 1 / m)).sum())
    if not _far(float(found.sum()), expected, variance):
        return ""
    ratio = float(found.sum()) / max(expected, 1)
    return f"labels repeat within cohorts {ratio:.3f} times as often as chance makes them"


def _independent_of_text(evidence: Evidence) -> str:
    """Test that two searches of one text in one cohort share a label as often as chance makes them."""
    rows = _searches(evidence)
    both = rows.group_by("cohort", "query").agg(n=pl.len())
    same = (
        rows.group_by("cohort", "query", "user")
        .agg(len=_count())
        .group_by("cohort", "query")
        .agg(pairs=(pl.col("len") * (pl.col("len") - 1) // 2).sum())
    )
    table = (
        both.filter(pl.col("n") > 1)
        .join(same, on=["cohort", "query"], nulls_equal=True)
        .join(_sizes(rows), on="cohort")
        .collect()
    )
    n, m = table["n"].cast(pl.Float64), table["members"].cast(pl.Float64)
    pairs = n * (n - 1) / 2
    found, expected = int(table["pairs"].sum()), float((pairs / m).sum())
    variance = float((pairs / m * (1 - 1 / m)).sum())
    if not _far(found, expected, variance):
        return ""
    return f"{found:,} pairs of the same text share a label; {expected:,.0f} were to be expected"


def _audit(check: str, test: object) -> Audit:
    return Audit(check, test, needs_truth=True, on_parts=True)  # type: ignore[arg-type]


def audits(k: int) -> tuple[Audit, ...]:
    """Give the audits of `cohort`; those of chance alarm once in a million good releases."""
    return (
        _audit(f"everyone is in one cohort of at least {k} users", lambda e: _one_cohort_each(k, e)),
        _audit("a record's label tells nothing about its author", _own_label),
        _audit("every label of a cohort is drawn alike", _even_labels),
        _audit("labels do not depend on the text", _independent_of_text),
        _audit("all rows of one search carry one label", one_label),
    )

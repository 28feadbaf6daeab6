"""Audits for every release: nothing made up, shown twice, lost or changed on the way."""

from __future__ import annotations

import numpy as np
import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.guarantee import Audit, NotApplicable, rows_text


def faults(rows: pl.LazyFrame, what: str) -> str:
    """Turn the rows at fault into a text that names them by number; no row, no text."""
    numbers = rows.select("released_row").collect().to_series().sort().to_list()
    return f"{rows_text(numbers, len(numbers))} {what}" if numbers else ""


def shown_after_erasure(evidence: Evidence) -> str:
    """Check that no label and no record of an erased user was released after the erasure."""
    if evidence.erased is None:
        return ""
    erased = evidence.erased.select("user", "erased_after")
    rows = evidence.traced.select("released_row", "user", "original_user", "released_after")
    beside = pl.concat(
        [rows.join(erased, on="user"), rows.join(erased, left_on="original_user", right_on="user")],
        how="diagonal",
    )
    late = beside.filter(pl.col("released_after") > pl.col("erased_after"))
    what = "left with the label, or as a record, of somebody erased before"
    return faults(late.unique("released_row"), what)


def one_label(evidence: Evidence) -> str:
    """Check that all rows of one search carry one label."""
    rows = evidence.placed("released_row", "user")
    head, user = rows["head"].to_numpy(), rows["user"].to_numpy()
    label = np.zeros(evidence.asked.height, np.int64)
    label[head] = user  # of any row of the search; the others must agree
    other = rows.lazy().filter(pl.Series(label[head] != user))
    return faults(other, "of one search carry several labels")


def _nothing_made_up(evidence: Evidence) -> str:
    strange = pl.col("place") < 0
    if evidence.makes_rows:  # the truth says which: those have no row at all
        strange &= pl.col("original_row").is_not_null()
        if evidence.traced.select(pl.col("original_row").is_null().all()).collect().item():
            raise NotApplicable("a method of this release creates all of its rows")
    return faults(evidence.traced.filter(strange), "come from no row of the original")


def _nothing_twice(evidence: Evidence) -> str:
    place = evidence.traced.select("place").collect().to_series().to_numpy()
    times = np.bincount(place[place >= 0], minlength=evidence.asked.height)
    twice = pl.Series((place >= 0) & (times[place] > 1)) if times.size else pl.lit(False)
    return faults(evidence.traced.filter(twice), "show an original row that another shows too")


def _same_rows(evidence: Evidence) -> str:
    """Check that no row was lost or added since the ground truth was made."""
    assert evidence.truth is not None
    shown, known = (one.select("released_row").collect() for one in (evidence.release, evidence.truth))
    if shown.equals(known):
        return ""
    lost = known.join(shown, on="released_row", how="anti").height
    added = shown.join(known, on="released_row", how="anti").height
    return f"{lost:,} rows are missing, {added:,} are added" if lost or added else ""


def queries_unchanged(evidence: Evidence) -> str:
    """Check that every released query is the one that was asked."""
    if evidence.rewritten:
        raise NotApplicable("a method of this release rewrites queries")
    asked = evidence.asked["query"].to_numpy()
    shown = evidence.traced.select("place", "query").collect()
    place, query = (shown[name].to_numpy() for name in ("place", "query"))
    strange = np.full(place.size, not evidence.makes_rows)  # rows that come from nowhere were never asked
    other = np.where(place >= 0, asked[place] != query, strange) if asked.size else strange
    return faults(evidence.traced.filter(pl.Series(other)), "show another query than was asked")


#: What holds for a release whatever methods made it.
LINEAGE = (
    Audit("every released row comes from a row of the original", _nothing_made_up, True, on_parts=True),
    Audit("no row of the original is shown twice", _nothing_twice, True, on_parts=True),
    Audit("the release has exactly the rows of the ground truth", _same_rows, True, on_parts=True),
    Audit("every released query is the one that was asked", queries_unchanged, True, on_parts=True),
)

"""Promises in a form that an independent audit can test. Audits share no code with methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import polars as pl

Verdict = Literal["kept", "broken", "not checkable", "not applicable"]


class NotCheckable(Exception):
    """Raised by an audit that cannot tell from what it was given; the text says why."""


@dataclass(frozen=True)
class Evidence:
    """What an audit may look at.

    `release` has the canonical columns and `released_row`; `original` has them and `row`; `truth` is
    the private file of `protect --truth`. `later` names the methods that ran after the audited one;
    `rewritten` says that some method of the release may show other queries than were asked, and
    `rewritten_later` that one of the later ones may.
    """

    release: pl.LazyFrame
    original: pl.LazyFrame | None = None
    truth: pl.LazyFrame | None = None
    later: tuple[str, ...] = ()
    rewritten: bool = False
    rewritten_later: bool = False
    memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def traced(self) -> pl.LazyFrame:
        """Each released row beside the truth about it, `user` being the one whom its label stands for."""
        assert self.truth is not None
        beside = self.release.join(self.truth, on="released_row", how="left")
        if "label_user" in beside.collect_schema().names():
            beside = beside.with_columns(user=pl.col("label_user"))
        return beside.drop("time", "rank", "url", strict=False).collect().lazy()

    @cached_property
    def searches(self) -> pl.LazyFrame:
        """Each row of the original with `head`, the first row of its search, and `entered`.

        `entered` counts the rows read once the whole search was read, in the order of replay: by time,
        ties by row.
        """
        assert self.original is not None
        if "time" not in self.original.collect_schema().names():
            raise NotCheckable(
                "the original has no times, so only the key knows in which order it was replayed"
            )
        who = (pl.col("user").hash(3) ^ pl.col("query").hash(4)).alias("who")
        rows = self.original.select("row", "time", who)
        units = rows.group_by("who", "time").agg(head=pl.col("row").min(), size=pl.len())
        ordered = units.sort("time", "head", nulls_last=True)
        entered = ordered.with_columns(entered=pl.col("size").cum_sum().cast(pl.Int64)).drop("size")
        return rows.join(entered, on=["who", "time"]).select("row", "head", "entered").collect().lazy()


@dataclass(frozen=True)
class Finding:
    """The answer of one audit. `detail` counts and names rows of the release, never their content."""

    check: str
    verdict: Verdict
    detail: str = ""

    def as_dict(self) -> dict[str, str]:
        """Give the finding as plain values, for a certificate."""
        return {"check": self.check, "verdict": self.verdict, "detail": self.detail}


@dataclass(frozen=True)
class Audit:
    """One test of a promise: `run` gives an empty text when it holds, or says what is broken."""

    check: str
    run: Callable[[Evidence], str]
    needs_truth: bool = False

    def __call__(self, evidence: Evidence) -> Finding:
        """Run the test on the evidence there is."""
        if self.needs_truth and (evidence.original is None or evidence.truth is None):
            return Finding(self.check, "not checkable", "needs the original log and the truth file")
        try:
            fault = self.run(evidence)
        except NotCheckable as reason:
            return Finding(self.check, "not checkable", str(reason))
        return Finding(self.check, "broken" if fault else "kept", fault)


@dataclass(frozen=True)
class Guarantee:
    """What a method promises, what it does not, and the audits that test it."""

    words: str
    does_not_protect_against: tuple[str, ...]
    audits: tuple[Audit, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    def audit(self, evidence: Evidence) -> list[Finding]:
        """Run every audit."""
        return [audit(evidence) for audit in self.audits]


def verdict_of(findings: list[Finding]) -> Verdict:
    """Sum up: broken beats kept, kept beats not checkable."""
    seen = {finding.verdict for finding in findings}
    order: tuple[Verdict, ...] = ("broken", "kept", "not checkable")
    return next((verdict for verdict in order if verdict in seen), "not applicable")


def rows_text(rows: list[int], total: int) -> str:
    """Name the first rows of a release at fault: `3 rows of the release, the first: 4, 8, 15`."""
    first = ", ".join(str(row) for row in rows[:5])
    return f"{total:,} row{'s' if total != 1 else ''} of the release, the first: {first}"

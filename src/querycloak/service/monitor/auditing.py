"""Audits slices of the stream, one after the other: released lines from the log, the truth from memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from querycloak import certificate
from querycloak.audits.evidence import Part
from querycloak.engines import audit as auditing
from querycloak.engines.audit import AuditResult
from querycloak.errors import Gone
from querycloak.guarantee import Finding
from querycloak.service.monitor.lines import parsed
from querycloak.service.monitor.slices import Slice
from querycloak.service.sinks.released_log import ReleasedLog

#: A check of the watch's own: the log must hold what the stream let go.
AS_IT_LEFT = "the released lines are those that left, each once and in order"


@dataclass(frozen=True)
class Seen:
    """What the audit of the lines from `first` to `last` found."""

    first: int
    last: int
    methods: list[dict[str, Any]]
    lineage: list[Finding]


class Auditor:
    """Remembers, from slice to slice, what waits: that is where the next slice begins."""

    def __init__(self, log: ReleasedLog) -> None:
        self._log = log
        self._held: pl.DataFrame | None = None
        self._present: pl.DataFrame | None = None

    def audit(self, part: Slice) -> Seen | None:
        """Audit a slice; None if nothing left in it, or it does not follow from what is known."""
        if not part.whole:
            self._held = None
        if part.held is not None:
            self._held, self._present = part.held, None
            if part.new_epoch:
                self._present = pl.DataFrame(schema={"user": pl.Int64, "category": pl.String})
        held, self._held = self._held, None  # until this slice is done
        return self._follow(part, held) if held is not None else None

    def _follow(self, part: Slice, held: pl.DataFrame) -> Seen | None:
        original = pl.concat([held, *part.came])
        try:
            release = parsed(self._log, part.first, part.last)
        except (Gone, pl.exceptions.PolarsError):  # a line that cannot be read is a line that is not there
            release = parsed(self._log, 1, 0)
        truth = _truth(part, held.height)
        found = self._look(part, release, original, truth, held.height)
        self._held = original.filter(pl.col("row").is_in(pl.Series(part.stay, dtype=pl.Int64).implode()))
        self._present = found.waiting
        if not truth.height:
            return None
        return Seen(part.first, part.last, found.methods, [_same(release, truth), *found.lineage])

    def _look(
        self, part: Slice, release: pl.DataFrame, original: pl.DataFrame, truth: pl.DataFrame, held: int
    ) -> AuditResult:
        """Have the audits run; the order of arrival takes the place of times, which live streams mix up."""
        rows = original.rename({"_head": "time"})
        erased = _erased(part, held)
        return auditing.audit(
            part.stages,
            release.lazy(),
            rows.lazy(),
            truth.lazy(),
            erased=erased.lazy() if erased.height else None,
            part=Part(part.since, self._present),
        )


def _shift(part: Slice, held: int) -> int:
    """Audits count the rows that they see: those before the slice are as many as waited at its beginning."""
    return held - part.since


def _truth(part: Slice, held: int) -> pl.DataFrame:
    if not part.left:
        empty = {"released_row": pl.Int64, "original_row": pl.Int64, "original_user": pl.Int64}
        return pl.DataFrame(schema=empty | {"released_after": pl.Int64})
    whole = pl.concat(part.left, how="diagonal_relaxed")
    return whole.with_columns(pl.col("released_after").cast(pl.Int64) + _shift(part, held))


def _erased(part: Slice, held: int) -> pl.DataFrame:
    schema = {"user": pl.Int64, "erased_after": pl.Int64}
    moved = [(who, at + _shift(part, held)) for who, at in part.erased]
    return pl.DataFrame(moved, schema=schema, orient="row")


def _same(release: pl.DataFrame, truth: pl.DataFrame) -> Finding:
    same = release["released_row"].equals(truth["released_row"], check_names=False)
    return Finding(AS_IT_LEFT, "kept" if same else "broken", "" if same else "lines are missing or changed")


def together(seen: list[Seen]) -> tuple[list[dict[str, Any]], list[Finding]]:
    """Sum up the audits of several slices: each check, broken if it was broken anywhere."""
    methods = [dict(part) for part in seen[0].methods]
    for place, method in enumerate(methods):
        every = [[Finding(**check) for check in one.methods[place]["checks"]] for one in seen]
        method.update(certificate.verdicts(_summed(every)))
    return methods, _summed([one.lineage for one in seen])


def _summed(every: list[list[Finding]]) -> list[Finding]:
    return [_sum(list(column)) for column in zip(*every, strict=True)]


def _sum(same: list[Finding]) -> Finding:
    """Take the worst: a check that some slice could not make was not made for the period."""
    for verdict in ("broken", "not checkable", "kept"):
        for finding in same:
            if finding.verdict == verdict:
                return finding
    return same[0]

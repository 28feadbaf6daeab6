"""Audits the stream in slices: released lines are read back from the log, the ground truth is in memory."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak import certificate
from querycloak.audits.cells import comparable
from querycloak.audits.evidence import Part, number, numbered
from querycloak.engines import audit as auditing
from querycloak.engines.pipeline import Stage
from querycloak.errors import Gone
from querycloak.guarantee import Finding
from querycloak.log import CANONICAL, IntArray
from querycloak.service.entries import SCHEMA
from querycloak.service.sinks.released_log import ReleasedLog
from querycloak.service.stream.stream import Output, Stream, StreamObserver

#: Check that is the monitor's own: the log has the lines that the stream released.
AS_IT_LEFT: Final = "the released lines are those that left, each once and in order"
#: Rows that arrive or are released within a slice, about; each takes some 70 bytes.
SLICE_ROWS: Final = 100_000
#: Slices that may wait for the audit; further ones are left out, and the certificate states it.
MOST_SLICES: Final = 16
_READ_ROWS: Final = 50_000
_LINE: Final = {"offset": pl.Int64, **{name: SCHEMA[name] for name in CANONICAL}, "time": pl.String}
_ROW: Final = {
    **dict.fromkeys(("row", "_head", "user", "query", "time", "rank", "url"), pl.Int64),
    "category": pl.String,
}
_TRUTH: Final = dict.fromkeys(("released_row", "original_row", "original_user", "released_after"), pl.Int64)
_CHANGED: Final = "lines are missing or changed"


def read_pieces(log: ReleasedLog, first: int, last: int) -> Iterator[tuple[bytes, int]]:
    """Yield the lines from `first` to `last` in pieces, with the number of lines in each."""
    after = first - 1
    while after < last:
        lines = log.read(after, min(_READ_ROWS, last - after))
        if not lines:
            return
        count = lines.count(b"\n")
        yield lines, count
        after += count


def read_table(log: ReleasedLog, first: int, last: int) -> pl.DataFrame:
    """Return released records as a table; `released_row` is the offset.

    Raise PolarsError for lines that cannot be read, or with other keys.
    """
    whole = b"".join(lines for lines, _ in read_pieces(log, first, last))
    rows = pl.DataFrame(schema=_LINE)
    if whole:  # a schema alone would ignore further keys
        rows = pl.read_ndjson(io.BytesIO(whole), schema_overrides=_LINE, infer_schema_length=None)
    if rows.columns != list(_LINE):
        raise pl.exceptions.SchemaError("the lines have other keys")
    when = pl.col("time").str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
    return rows.with_columns(when).rename({"offset": "released_row"})


@dataclass
class AuditSlice:
    """The stream between two moments; users and queries are numbers.

    `held` are the records held at the beginning, unless they follow from the slice before; `still_held` are
    the rows held at the end. A slice that is not `complete` only states which lines were left out.
    """

    stages: list[Stage]
    since: int
    first: int
    held: pl.DataFrame | None = None
    new_epoch: bool = False
    arrived: list[pl.DataFrame] = field(default_factory=list)
    truth: list[pl.DataFrame] = field(default_factory=list)
    erased: list[tuple[int, int]] = field(default_factory=list)
    still_held: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    last: int = 0
    rows: int = 0
    complete: bool = True


class SliceCollector(StreamObserver):
    """Collects slices in the worker's thread and queues them for the audit's thread."""

    def __init__(self, stream: Stream, rows: int = SLICE_ROWS) -> None:
        self.size = rows
        self.ready: deque[AuditSlice] = deque()
        self.lost = False  # set by the audit when it cannot continue from the slice before
        self._slice = self._first(stream)

    def _first(self, stream: Stream, *, new_epoch: bool = False) -> AuditSlice:
        """Return a slice that begins where the stream is; of earlier records only the held ones are known."""
        held = stream.records.columns(*_ROW)
        made = self._next(stream, stream.accepted)
        made.held = _as_numbers(held) if held is not None else pl.DataFrame(schema=_ROW)
        made.new_epoch = new_epoch or not made.held.height
        return made

    def _next(self, stream: Stream, since: int) -> AuditSlice:
        return AuditSlice(stream.stages_in_force(), since, stream.released + 1)

    def on_records(self, stream: Stream, rows: pl.DataFrame) -> None:
        """Add arrived records; before that, end a slice that is large enough."""
        if self._slice.rows >= self.size:
            self._end(stream, int(rows["row"][0]))
        self._slice.arrived.append(_as_numbers(rows.select(*_ROW)))
        self._slice.rows += rows.height

    def on_release(self, output: Output) -> None:
        """Add the ground truth of released records."""
        offsets = output.frame["offset"].alias("released_row")
        self._slice.truth.append(numbered(output.truth.with_columns(offsets).lazy()).collect())
        self._slice.rows += len(output)

    def on_erasure(self, stream: Stream, label: str) -> None:
        """Add an erased user, and the moment."""
        user = int(pl.select(number(pl.lit(label))).item())
        self._slice.erased.append((user, stream.accepted))

    def on_epoch(self, stream: Stream) -> None:
        """End the slice with the epoch; the next begins without users."""
        self._close(stream)
        self._slice = self._first(stream, new_epoch=True)

    def on_setting(self, stream: Stream) -> None:
        """End the slice, whose settings are those that were in force until now."""
        self.cut(stream)

    def cut(self, stream: Stream) -> None:
        """End the slice now, between two entries."""
        self._end(stream, stream.accepted)

    def _end(self, stream: Stream, since: int) -> None:
        if self._close(stream):
            self._slice = self._next(stream, since)
        else:
            self._slice = self._first(stream)
            self._slice.since = since

    def _close(self, stream: Stream) -> bool:
        """Queue the slice, without content if too many are queued; return whether the next can follow it."""
        self._slice.last = stream.released
        if len(self.ready) >= MOST_SLICES or self.lost:
            self.lost = False
            self.ready.append(replace(self._slice, arrived=[], truth=[], held=None, complete=False))
            return False
        rows = stream.records.columns("row")
        self._slice.still_held = rows["row"].to_numpy() if rows is not None else self._slice.still_held
        self.ready.append(self._slice)
        return True


def _as_numbers(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace all cells but categories by numbers, as audits compare them: no other text is kept."""
    others = [comparable(name).alias(name) for name in ("time", "rank", "url")]
    return rows.with_columns(number(pl.col("user")), number(pl.col("query")), *others).cast(
        {"category": pl.String}
    )


@dataclass(frozen=True)
class SliceAudit:
    """Findings on the lines from `first` to `last`."""

    first: int
    last: int
    methods: list[dict[str, Any]]
    lineage: list[Finding]


class StreamAuditor:
    """Audits slices in order; the records held at the end of one are those at the beginning of the next."""

    def __init__(self, log: ReleasedLog) -> None:
        self._log = log
        self._held: pl.DataFrame | None = None
        self._present: pl.DataFrame | None = None

    def audit(self, part: AuditSlice) -> SliceAudit | None:
        """Audit a slice; None if it released nothing, or does not follow from the one before."""
        if not part.complete:
            self._held = None
        if part.held is not None:
            self._held, self._present = part.held, None
            if part.new_epoch:
                self._present = pl.DataFrame(schema={"user": pl.Int64, "category": pl.String})
        held, self._held = self._held, None  # until this slice is done
        return self._audit(part, held) if held is not None else None

    def _audit(self, part: AuditSlice, held: pl.DataFrame) -> SliceAudit | None:
        """Run the audits; the order of arrival replaces the times, which a live stream does not order."""
        original = pl.concat([held, *part.arrived])
        try:
            release = read_table(self._log, part.first, part.last)
        except (Gone, pl.exceptions.PolarsError):  # a line that cannot be read counts as missing
            release = read_table(self._log, 1, 0)
        shift = held.height - part.since  # row numbers of an audit begin with the held rows
        truth = pl.concat(part.truth or [pl.DataFrame(schema=_TRUTH)], how="diagonal_relaxed")
        truth = truth.with_columns(pl.col("released_after").cast(pl.Int64) + shift)
        cells = auditing.cell_audit(part.stages, original.drop("_head").lazy(), truth.lazy())
        if cells is not None:
            cells.add(release)
        erased = pl.DataFrame(part.erased, {"user": pl.Int64, "erased_after": pl.Int64}, orient="row")
        found = auditing.audit(
            part.stages,
            release.lazy(),
            original.drop("time", "rank", "url").rename({"_head": "time"}).lazy(),
            truth.lazy(),
            erased=erased.lazy().with_columns(pl.col("erased_after") + shift) if erased.height else None,
            part=Part(part.since, self._present),
            cells=cells,
        )
        still = pl.Series(part.still_held, dtype=pl.Int64).implode()
        self._held, self._present = original.filter(pl.col("row").is_in(still)), found.waiting
        if not truth.height:
            return None
        same = release["released_row"].equals(truth["released_row"], check_names=False)
        as_it_left = Finding(AS_IT_LEFT, "kept") if same else Finding(AS_IT_LEFT, "broken", _CHANGED)
        return SliceAudit(part.first, part.last, found.methods, [as_it_left, *found.lineage])


def summarise(audits: list[SliceAudit]) -> tuple[list[dict[str, Any]], list[Finding]]:
    """Return the findings of several slices as one; a check that failed in one slice has failed."""
    lineage = _worst_of_each([one.lineage for one in audits])
    methods = []
    for place, part in enumerate(audits[0].methods):
        checks = [[Finding(**check) for check in one.methods[place]["checks"]] for one in audits]
        worst = [one.as_dict() for one in _worst_of_each(checks)]
        methods.append(certificate.judged({**part, "checks": worst}, lineage))
    return methods, lineage


def _worst_of_each(findings: list[list[Finding]]) -> list[Finding]:
    """Return the worst of each check; one that a slice could not make was not made for the period."""
    order = ("broken", "not checkable", "kept", "not applicable")
    return [min(same, key=lambda one: order.index(one.verdict)) for same in zip(*findings, strict=True)]

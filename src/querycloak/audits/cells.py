"""Audit of every cell: as in the original, empty, coarse, a new pseudonym, or written by a method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from querycloak.audits.evidence import Evidence, number, places
from querycloak.audits.lineage import faults
from querycloak.guarantee import NEEDS_TRUTH, Audit, Finding, NotCheckable, rows_text
from querycloak.log import CANONICAL, MISSING, IntArray

_SECOND: Final = 1_000_000
_UNITS: Final = {3600 * _SECOND: "hour", 86400 * _SECOND: "day"}
#: Row numbers at fault that are remembered for each column.
_REMEMBERED: Final = 5
#: Pairs in the ground truth and the release: a user, and the label that stands for this user.
_PAIRS: Final = (("label_user", "user"), ("original_user", "original_label"))
#: Columns that other audits test: the query by the lineage.
_ELSEWHERE: Final = frozenset({"released_row", "query"})
#: Columns with values; all others are texts.
_TYPED: Final = frozenset({"time", "rank"})
_TEXTS: Final = frozenset(CANONICAL) - _TYPED


@dataclass(frozen=True)
class CellRules:
    """What the cells of each column may contain, by the traits of the methods of a release.

    `written` holds the method that sets a column; the checks of that method test the values.
    """

    empty: frozenset[str] = frozenset()
    may_empty: frozenset[str] = frozenset()
    written: Mapping[str, str] = field(default_factory=dict)
    time_unit: int = 0
    pseudonyms: bool = False

    def check(self, column: str) -> str:
        """Return what the audit of a column checks, in words."""
        if column in self.empty:
            return f"every `{column}` is empty"
        if column == "user" and self.pseudonyms:
            return "every label is a new pseudonym, and no user id of the log"
        if column == "time" and self.time_unit:
            unit = _UNITS.get(self.time_unit, f"{self.time_unit // _SECOND:,} s")
            return f"every `time` is that of its original row, truncated to the {unit}"
        return f"every `{column}` is that of its original row"


class CellAudit:
    """Compares the cells of a release, piece by piece, with the original and the ground truth.

    `original` has `row` and the columns that are compared. `truth` is the ground truth, by released row.
    Without them only what the release alone can show is tested.
    """

    def __init__(
        self, rules: CellRules, original: pl.LazyFrame | None = None, truth: pl.LazyFrame | None = None
    ) -> None:
        self.rules = rules
        self._original = None if original is None else _by_row(original)
        self._truth = None if truth is None else truth.collect().sort("released_row")
        #: Columns of the release whose cells are audited, after `add`.
        self.columns: list[str] = []
        self._faults: dict[str, list[int]] = {}
        self._totals: dict[str, int] = {}
        self._pairs: list[pl.DataFrame] = []

    def add(self, piece: pl.DataFrame) -> None:
        """Audit some rows of the release: `released_row` and all columns that it has."""
        self.columns = [name for name in piece.columns if name not in _ELSEWHERE]
        beside = self._beside(piece)
        for name in self.columns:
            wrong = self._wrong(name, beside)
            if wrong is not None:
                self._note(name, beside.filter(wrong)["released_row"])
        if self.rules.pseudonyms and "user" in piece.columns:
            self._pairs += _pairs(piece, self._truth_of(piece))

    def findings(self) -> Iterator[Finding]:
        """Yield what was found about each column."""
        for name in sorted(self.columns, key=_order):
            yield self._finding(name)

    def _finding(self, name: str) -> Finding:
        check = self.rules.check(name)
        if fault := self._fault(name):
            return Finding(check, "broken", fault)
        if name in self.rules.empty:
            return Finding(check, "kept")
        if (method := self.rules.written.get(name)) is not None:
            return Finding(check, "not applicable", f"`{method}` sets this column, and its checks test it")
        if self._original is None or self._truth is None:
            return Finding(check, "not checkable", NEEDS_TRUTH)
        if name not in self._original.columns:
            return Finding(check, "broken", f"the original has no column `{name}`")
        return Finding(check, "kept")

    def _fault(self, name: str) -> str:
        if name == "user" and self.rules.pseudonyms:
            return self._label_fault()
        if total := self._totals.get(name, 0):
            return f"{rows_text(self._faults[name], total)} have another `{name}`"
        return ""

    def _note(self, name: str, rows: pl.Series) -> None:
        known = self._faults.setdefault(name, [])
        known += rows.head(_REMEMBERED - len(known)).to_list()
        self._totals[name] = self._totals.get(name, 0) + len(rows)

    def _truth_of(self, piece: pl.DataFrame) -> pl.DataFrame | None:
        """Return the ground truth of some rows, in their order; empty cells for rows that it lacks."""
        if self._truth is None:
            return None
        rows, known = piece["released_row"], self._truth["released_row"]
        place = places(known.to_numpy(), rows.to_numpy())
        return _at(self._truth, place)

    def _beside(self, piece: pl.DataFrame) -> pl.DataFrame:
        """Return some rows with the cells of their original rows, as `original NAME`, and `created`."""
        truth = self._truth_of(piece)
        if truth is None or self._original is None:
            return piece.with_columns(created=pl.lit(False))
        rows = truth["original_row"].fill_null(MISSING).to_numpy()
        wanted = [name for name in self.columns if name in self._original.columns]
        cells = _at(self._original.select(wanted), places(self._original["row"].to_numpy(), rows))
        return piece.with_columns(
            *(cells[name].alias(f"original {name}") for name in wanted),
            created=truth["original_row"].is_null(),
        )

    def _wrong(self, name: str, beside: pl.DataFrame) -> pl.Expr | None:
        """Return which rows have a cell that the column may not contain; None if it may contain all."""
        kind, original = beside.schema[name], f"original {name}"
        if name in self.rules.empty:
            return _filled(name, kind)
        if self._is_free(name):
            return None
        unit = self.rules.time_unit if name == "time" else 0
        finer = pl.col(name).to_physical() % unit != 0 if unit else pl.lit(False)
        if original not in beside.columns:
            return finer
        wanted = pl.col(original) - pl.col(original) % unit if unit else pl.col(original)
        other = comparable(name).ne_missing(wanted)
        if name in self.rules.may_empty:
            other &= _filled(name, kind)
        return pl.when(pl.col("created")).then(finer).otherwise(other)

    def _is_free(self, name: str) -> bool:
        """Whether cells of the column are tested elsewhere: by a method's checks, or as labels."""
        return name in self.rules.written or (name == "user" and self.rules.pseudonyms)

    def _label_fault(self) -> str:
        """Check that no label is a user id, and that each label stands for the user whom the truth names."""
        if not self._pairs:
            return ""
        pairs = pl.concat(self._pairs).unique()
        labels = pairs.select("label").unique()
        if self._original is not None and "user" in self._original.columns:
            known = labels.join(self._original.select(label="user").unique(), on="label", how="semi").height
            if known:
                return f"{known:,} labels are user ids of the log"
        named = pairs.drop_nulls("person")
        sizes = {named.height, named["person"].n_unique(), named["label"].n_unique()}
        if len(sizes) > 1:
            return "labels stand for other users than the ground truth states"
        return ""


def _not_above(evidence: Evidence) -> str:
    """Check that every category is that of its search, or above it; a search has that of its first row."""
    assert evidence.original is not None
    if evidence.rewritten_later:
        raise NotCheckable("a later method of this release rewrites queries and their categories")
    text, schema = evidence.text(), evidence.original.collect_schema()
    if "category" not in schema or "category" not in text.collect_schema():
        return ""
    rows = evidence.placed("released_row")
    own = (
        evidence.original.select("row", pl.col("category").cast(pl.String)).collect().sort("row")["category"]
    )
    heads = rows.lazy().select("released_row", own=own.gather(rows["head"].to_numpy()))
    beside = text.select("released_row", "category").join(heads, on="released_row", how="left")
    pair = pl.col("category"), pl.col("own")
    within = (pair[0] == pair[1]) | pair[1].str.starts_with(pair[0] + "/")
    return faults(beside.filter(pair[0].is_not_null() & ~within.fill_null(False)), "show another category")


#: Check of a method that generalises categories.
CATEGORY_OR_ABOVE: Final = Audit(
    "every category is that of its search, or one above it", _not_above, needs_truth=True, on_parts=True
)


def _by_row(original: pl.LazyFrame) -> pl.DataFrame:
    """Return an original as it is compared, by row; canonical texts can be numbers already."""
    schema = original.collect_schema()
    raw = [name for name in schema if not (name == "row" or (name in _TEXTS and schema[name] == pl.Int64))]
    frame = original.with_columns(comparable(name).alias(name) for name in raw).collect()
    return frame if frame["row"].is_sorted() else frame.sort("row")


def _at(frame: pl.DataFrame, place: IntArray) -> pl.DataFrame:
    """Return the rows at these places; an empty one for -1."""
    return frame.select(pl.all().gather(pl.Series(place).set(pl.Series(place) < 0, None)))


def comparable(name: str) -> pl.Expr:
    """Return a column as numbers; an absent text is an empty one."""
    if name in _TYPED:
        return pl.col(name).to_physical()
    return number(pl.col(name).cast(pl.String).fill_null(""))


def _filled(name: str, kind: pl.DataType) -> pl.Expr:
    cell = pl.col(name)
    return (cell.is_not_null() & (cell != "")) if kind == pl.String else cell.is_not_null()


def _pairs(piece: pl.DataFrame, truth: pl.DataFrame | None) -> list[pl.DataFrame]:
    """Return the labels of some rows, each with the user for whom it stands if the truth states this."""
    beside = (
        piece.select("user") if truth is None else pl.concat([truth, piece.select("user")], how="horizontal")
    )
    known = [(person, label) for person, label in _PAIRS if {person, label} <= set(beside.columns)]
    lines = [
        beside.select(_as_number(beside, person, "person"), _as_number(beside, label, "label"))
        for person, label in known
    ]
    if not lines:
        lines = [
            beside.select(_as_number(beside, "user", "label")).with_columns(person=pl.lit(None, pl.Int64))
        ]
    return [one.select("person", "label").drop_nulls("label").unique() for one in lines]


def _as_number(frame: pl.DataFrame, name: str, alias: str) -> pl.Expr:
    """Return a column of users as numbers; it is one already where texts were freed."""
    column = pl.col(name)
    return (column if frame.schema[name] == pl.Int64 else number(column)).alias(alias)


def _order(name: str) -> tuple[int, str]:
    return (CANONICAL.index(name) if name in CANONICAL else len(CANONICAL), name)

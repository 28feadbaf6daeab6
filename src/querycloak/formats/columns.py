"""Which column of a file is the user, the query, the time; and which are dropped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from querycloak.errors import DataError, UnknownName, UsageError
from querycloak.formatting import plural
from querycloak.log import CANONICAL

if TYPE_CHECKING:
    from querycloak.formats.reading import ReadOptions

#: AOL's names of columns, which other logs use too.
AOL: Final = {
    "user": "AnonID",
    "query": "Query",
    "time": "QueryTime",
    "rank": "ItemRank",
    "url": "ClickURL",
}
_ALIASES: Final = {column.casefold(): name for name, column in AOL.items()}
_DATA = re.compile(r"[-+.:\d TZ/]*")


@dataclass(frozen=True)
class ColumnMap:
    """Position of each wanted column in the file: canonical names first, then kept ones."""

    sources: Mapping[str, int]
    dropped: tuple[str, ...]


def canonical_name(column: str) -> str | None:
    """Return the canonical name that a column has by itself, without a mapping."""
    lower = column.casefold()
    return lower if lower in CANONICAL else _ALIASES.get(lower)


def check_options(options: ReadOptions) -> None:
    """Raise for a mapping or a kept column that no log can have."""
    for name in options.mapping:
        if name not in CANONICAL:
            raise UnknownName(
                f"no column of a record is called `{name}`", hint=f"the columns are {', '.join(CANONICAL)}"
            )
    if "row" in options.keep:
        raise UsageError("a column called `row` cannot be kept", hint="rename it in the file")


def map_columns(columns: Sequence[str], options: ReadOptions, *, fixed: bool = True) -> ColumnMap:
    """Find the wanted columns; if not `fixed`, records differ in columns and a mapped one can be absent."""
    sources = _canonical(columns, options, fixed)
    for name in options.required:
        if name not in sources and name != "time":
            raise missing_column(name, columns, options.where)
    for name in options.keep:
        if name not in sources:
            place = _find(name, columns, options.where)
            if place not in sources.values():
                sources[name] = place
    used = set(sources.values())
    dropped = tuple(dict.fromkeys(name for place, name in enumerate(columns) if place not in used))
    return ColumnMap(sources, dropped)


def _canonical(columns: Sequence[str], options: ReadOptions, fixed: bool) -> dict[str, int]:
    mapped = {
        name: _find(column, columns, options.where)
        for name, column in options.mapping.items()
        if fixed or column in columns
    }
    taken, found = set(mapped.values()), dict[str, int]()
    for name in CANONICAL:
        if name in options.mapping:
            found.update({name: mapped[name]} if name in mapped else {})
            continue
        names = [name] if name in columns else [c for c in columns if canonical_name(c) == name]
        free = [other for other in names if columns.index(other) not in taken]
        if free:
            found[name] = _find(free[0], columns, options.where)
    return found


def _find(column: str, columns: Sequence[str], where: str) -> int:
    """Return the position of a column that must occur once."""
    count = columns.count(column)
    if count == 0:
        raise missing_column(column, columns, where)
    if count > 1:
        raise DataError(f"{where} has {count} columns called `{column}`", hint="rename all but one of them")
    return columns.index(column)


def missing_column(name: str, columns: Sequence[str], where: str) -> DataError:
    """Return the error for a missing column; no other name is shown, since a first line can be a record."""
    if any(_DATA.fullmatch(column) for column in columns):
        return DataError(
            f"{where} has no column `{name}`: its first line does not look like a header",
            hint="put a line with the names of the columns first",
        )
    return DataError(
        f"{where} has no column `{name}`, but {plural(len(columns), 'other')}",
        hint=f"name the column: --map {name}=COLUMN; if there is no header, put one first",
    )

"""Which column of a file is the user, the query, the time; and which are dropped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from querycloak.errors import DataError, UnknownName, UsageError
from querycloak.formats.layout import AOL
from querycloak.formats.table import Options
from querycloak.log import CANONICAL

_ALIASES: Final = {name.casefold(): canonical for canonical, name in AOL.items()}
_DATA = re.compile(r"[-+.:\d TZ/]*")


@dataclass(frozen=True)
class Plan:
    """Where each wanted column stands: canonical names first, then kept ones."""

    sources: Mapping[str, int]
    dropped: tuple[str, ...]

    @property
    def wanted(self) -> tuple[str, ...]:
        """The wanted columns by their name in the frame."""
        return tuple(self.sources)


def check_options(options: Options) -> None:
    """Refuse a mapping or a kept column that cannot be meant."""
    for name in options.mapping:
        if name not in CANONICAL:
            raise UnknownName(
                f"no column of a record is called `{name}`", hint=f"the columns are {', '.join(CANONICAL)}"
            )
    if "row" in options.keep:
        raise UsageError("a column called `row` cannot be kept", hint="rename it in the file")


def plan(columns: Sequence[str], options: Options, where: str, *, fixed: bool = True) -> Plan:
    """Find the wanted columns among a file's; `fixed` says that no other column can appear later."""
    sources = _canonical(columns, options, where, fixed)
    for name in options.required:
        if name not in sources and name != "time":
            raise absent(name, columns, where)
    for name in options.keep:
        if name not in sources:
            place = _find(name, columns, where) if name in columns or fixed else -1
            if place not in sources.values() and place >= 0:
                sources[name] = place
    used = set(sources.values())
    dropped = tuple(dict.fromkeys(name for place, name in enumerate(columns) if place not in used))
    return Plan(sources, dropped)


def _canonical(columns: Sequence[str], options: Options, where: str, fixed: bool) -> dict[str, int]:
    mapped = {
        name: _find(column, columns, where)
        for name, column in options.mapping.items()
        if fixed or column in columns
    }
    taken, found = set(mapped.values()), dict[str, int]()
    for name in CANONICAL:
        if name in options.mapping:
            found.update({name: mapped[name]} if name in mapped else {})
            continue
        names = [name] if name in columns else _other_names(name, columns)
        free = [other for other in names if columns.index(other) not in taken]
        if free:
            found[name] = _find(free[0], columns, where)
    return found


def _other_names(name: str, columns: Sequence[str]) -> list[str]:
    return [c for c in columns if c.casefold() == name or _ALIASES.get(c.casefold()) == name]


def _find(column: str, columns: Sequence[str], where: str) -> int:
    """Give the place of a column that must be there once."""
    count = columns.count(column)
    if count == 0:
        raise absent(column, columns, where)
    if count > 1:
        raise DataError(f"{where} has {count} columns called `{column}`", hint="rename all but one of them")
    return columns.index(column)


def absent(name: str, columns: Sequence[str], where: str) -> DataError:
    """Say that a column is missing; a first line that may be a record is not shown."""
    if any(_DATA.fullmatch(column) for column in columns):
        return DataError(
            f"{where} has no column `{name}`: its first line does not look like a header",
            hint="put a line with the names of the columns first",
        )
    return DataError(
        f"{where} has no column `{name}`; its columns are {', '.join(columns)}",
        hint=f"say which column it is: --map {name}=COLUMN",
    )

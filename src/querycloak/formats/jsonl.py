"""Reading JSON lines: one object a line, values of any type."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import polars as pl

from querycloak.formats import reasons, times
from querycloak.formats.clean import TimeParser
from querycloak.formats.columns import Plan, plan
from querycloak.formats.layout import Layout, default_layout
from querycloak.formats.streams import Block, LineBlocks, Source, shown
from querycloak.formats.table import Faults, Options, Table, as_rows, note
from querycloak.log import CANONICAL

Object = dict[str, Any]
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def refuse(constant: str) -> None:
    """Refuse what Python would read and JSON does not know."""
    raise ValueError(constant)  # NaN and Infinity are no JSON


_DECODE: Final = json.JSONDecoder(parse_constant=refuse).decode


def read_objects(block: Block) -> tuple[list[Object | str], bool]:
    """Read a block's lines: objects, or the reason why a line is none. Also: can a text hold a NUL?"""
    if block.overlong:
        return [reasons.FIELD_TOO_LONG], False
    may_hold_nul = b"\0" in block.data or b"\\u0000" in block.data
    escaped = _ESCAPED_SURROGATE.search(block.data) is not None
    try:
        texts: list[str | None] = [*block.data.decode().split("\n")]
    except UnicodeDecodeError:
        texts = [_decoded(line) for line in block.data.split(b"\n")]
    return [_object(text, escaped) for text in texts[:-1]], may_hold_nul


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _object(text: str | None, escaped: bool) -> Object | str:
    if text is None:
        return reasons.NOT_UTF8
    if "\0" in text:
        return reasons.NUL_BYTE
    try:
        return checked(_DECODE(text), escaped)
    except (ValueError, RecursionError):
        return reasons.NOT_JSON


def checked(value: Any, escaped: bool) -> Object | str:
    """Give an object, or the reason why it is none: half of a pair of escapes is no character."""
    if not isinstance(value, dict):
        return reasons.NOT_JSON
    if escaped and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        return reasons.NOT_UTF8
    return value


def as_text(value: Any) -> str | None:
    """Give a text or number as text; anything else is no value."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # JSON has no way to write infinities; of a whole number no float is made, since some are too large.
    return repr(value) if isinstance(value, int) or math.isfinite(value) else None


def as_kept(value: Any) -> str | None:
    """Give any value as a text from which `from_kept` can tell it again: `"5"` is not `5`."""
    if value is None:
        return None
    if isinstance(value, str) and _is_no_json(value):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def from_kept(text: str | None) -> Any:
    """Undo `as_kept`."""
    if text is None or _is_no_json(text):
        return text
    return json.loads(text)


def _is_no_json(text: str) -> bool:
    try:
        _DECODE(text)
    except (ValueError, RecursionError):
        return True
    return False


def kind_of(values: Sequence[Any]) -> str:
    """Name the type of the first value there is."""
    first = next((value for value in values if value is not None), "")
    return {int: "Int64", float: "Float64"}.get(type(first), "String")


def _texts(values: list[Any]) -> pl.Series:
    try:
        return pl.Series(values, dtype=pl.String, strict=True)
    except TypeError:  # not texts alone
        return pl.Series([as_text(value) for value in values], dtype=pl.String)


def _kept(values: list[Any]) -> pl.Series:
    return pl.Series([as_kept(value) for value in values], dtype=pl.String)


class JsonLinesReader:
    """Gives the tables of a file of JSON lines; columns are what its objects turn out to have."""

    parse_time: TimeParser = staticmethod(times.parse)

    def __init__(self, source: Source, options: Options) -> None:
        self._blocks = LineBlocks(source.chunks())
        self._options = options
        self._where = shown(source.path)
        self._seen: dict[str, None] = {}
        self._plan = Plan({}, ())
        self.layout = replace(default_layout("jsonl"), compression=source.compression)

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns seen so far that are not passed on."""
        return self._plan.dropped

    def tables(self) -> Iterator[Table]:
        """Give the file's rows in stretches."""
        first = 0
        for block in self._blocks:
            lines, may_hold_nul = read_objects(block)
            yield self._table(lines, first, may_hold_nul)
            first += len(lines)

    def _table(self, lines: list[Object | str], first: int, may_hold_nul: bool) -> Table:
        good = [(row, line) for row, line in enumerate(lines, first) if isinstance(line, dict)]
        objects = [line for _, line in good]
        if objects:
            self._learn(objects)
        columns = {"row": pl.Series([row for row, _ in good], dtype=pl.Int64)}
        names = list(self._seen)
        for name, place in self._plan.sources.items():
            values = [item.get(names[place]) for item in objects]
            columns[name] = _texts(values) if name in CANONICAL else _kept(values)
        return Table(pl.DataFrame(columns), first, len(lines), bad_lines(lines, first), may_hold_nul)

    def _learn(self, objects: list[Object]) -> None:
        """Take note of columns not seen before."""
        shapes = dict.fromkeys(map(tuple, objects))
        fresh = [name for shape in shapes for name in shape if name not in self._seen]
        if not fresh and self._plan.sources:
            return
        self._seen.update(dict.fromkeys(fresh))
        names = list(self._seen)
        self._plan = plan(names, self._options, self._where, fixed=False)
        self.layout = self._described(names, objects)

    def _described(self, names: list[str], objects: list[Object]) -> Layout:
        sources = {name: names[place] for name, place in self._plan.sources.items()}
        mapping = {name: column for name, column in sources.items() if name in CANONICAL}
        kept = tuple(name for name in sources if name not in CANONICAL)
        kinds = {column: kind_of([item.get(column) for item in objects]) for column in mapping.values()}
        types = {**kinds, **self.layout.types}
        return replace(self.layout, columns=tuple(names), mapping=mapping, kept=kept, types=types)


def bad_lines(lines: Sequence[Object | str], first: int) -> Faults:
    """Collect the rows whose line gave a reason instead of an object."""
    bad: Faults = {}
    wrong = [(row, line) for row, line in enumerate(lines, first) if isinstance(line, str)]
    for reason in dict.fromkeys(reason for _, reason in wrong):
        note(bad, reason, as_rows([row for row, other in wrong if other == reason]))
    return bad

"""JSON lines: one object a line, values of any type. Decoded by msgspec, line by line where it refuses."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.formats import validation
from querycloak.formats.columns import canonical_name, map_columns
from querycloak.formats.layout import Layout
from querycloak.formats.output import Encoder, OutputFile, TextEncoder
from querycloak.formats.reading import RawTable, ReadOptions
from querycloak.formats.registry import FormatTraits, LineFormat, Match
from querycloak.formats.source import Block
from querycloak.formats.validation import BadRows, add_bad_rows, bad_rows
from querycloak.formatting import plural
from querycloak.log import CANONICAL

Object = dict[str, Any]
#: Bytes of the first block whose objects show which keys are common.
_SAMPLE: Final = 4 << 20
_SLICE: Final = 1 << 20
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_NUMBERS: Final = ("Int64", "Float64")
_VALUE: Final = str | int | float | None
_NULL: Final = msgspec.Raw(b"null")
_BAD_LINE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_KEYS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class JsonLines(LineFormat):
    """One JSON object a line."""

    name = "jsonl"
    traits = FormatTraits(extensions=(".jsonl", ".ndjson", ".json"), by_line=True)

    def detect(self, head: bytes, file_name: str) -> Match:
        """Return how well a file fits: by its first character or its name."""
        return Match.POSSIBLE if head.lstrip()[:1] == b"{" else super().detect(head, file_name)

    def parser(self, first_line: bytes, options: ReadOptions) -> JsonParser:
        """Return a parser."""
        if first_line.lstrip()[:1] == b"[":
            raise DataError(
                f"{options.where} is one JSON array, not JSON lines", hint="put one object on each line"
            )
        return JsonParser(self.default_layout(("user", "query", "time", "rank", "url")), options)

    def encoder(self, layout: Layout, output: OutputFile) -> Encoder:
        """Return an encoder that writes records to `output`."""
        return TextEncoder(output, lambda frame, first_row: _encode(frame, layout, first_row))


class JsonParser:
    """Parses blocks. Columns are fixed by the first block with an object.

    They are the keys that at least half of its first objects have, those called like a canonical column, and
    those that the caller named. All other keys can be data, so the records that have one are counted, and
    the keys' names are not passed on either.
    """

    def __init__(self, layout: Layout, options: ReadOptions) -> None:
        self.layout = layout
        self._options = options
        self._keys: dict[str, str] | None = None
        self._wanted: list[str] = []
        self._common: frozenset[str] = frozenset()
        self._dropped: dict[str, None] = {}
        self._with_rare_keys = 0
        self._decoders: tuple[msgspec.json.Decoder[Any], ...] = ()
        self._typed = False

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns that are not passed on."""
        return (*self._dropped, *rare_keys(self._with_rare_keys))

    def parse(self, block: Block, first_row: int = 0) -> RawTable:
        """Return the rows of a block, numbered from `first_row`."""
        if self._keys is None:
            self._learn(block)
        tables: list[RawTable] = []
        for part in _slices(block):
            tables.append(self._parse_slice(part, first_row))
            first_row = tables[-1].end
        bad: BadRows = {}
        for table in tables:
            for reason, rows in table.bad.items():
                add_bad_rows(bad, reason, rows)
        return RawTable(
            pl.concat([table.frame for table in tables], how="vertical_relaxed"),
            tables[0].first,
            sum(table.rows for table in tables),
            bad,
            may_hold_nul=any(table.may_hold_nul for table in tables),
        )

    def _parse_slice(self, block: Block, first_row: int) -> RawTable:
        """Return the rows of some lines, decoded at once if msgspec can."""
        records = self._decode(block) if self._decoders and not block.overlong else None
        if records is None:
            return self._parse_one_by_one(block, first_row)
        values = {key: [*map(attrgetter(f"f{n}"), records)] for n, key in enumerate(self._wanted)}
        rows = pl.int_range(first_row, first_row + len(records), dtype=pl.Int64, eager=True)
        frame = self._frame(rows, values, lambda raw: _kept_bytes(bytes(raw)))
        return RawTable(frame, first_row, len(records), {}, b"\\u0000" in block.data)

    def _decode(self, block: Block) -> list[Any] | None:
        """Return one record for each line, and count those with rare keys; None if a line is bad."""
        strict, lenient = self._decoders
        if (found := _decode(strict, block)) is not None:
            return found
        records, others = list[Any](), list[Mapping[str, Any]]()
        try:
            block.data.decode()
            for line in block.data.split(b"\n")[:-1]:
                try:
                    records.append(strict.decode(line))
                except msgspec.ValidationError:
                    records.append(lenient.decode(line))
                    others.append(_KEYS.decode(line))
        except _BAD_LINE:
            return None
        self._note_rare_keys(others)
        return records

    def _parse_one_by_one(self, block: Block, first_row: int) -> RawTable:
        """Return the rows of lines in which msgspec found a fault: a bad line costs no other."""
        lines, may_hold_nul = read_objects(block)
        good = {row: line for row, line in enumerate(lines, first_row) if isinstance(line, dict)}
        self._note_rare_keys(good.values())
        values = {key: [item.get(key) for item in good.values()] for key in self._wanted}
        frame = self._frame(pl.Series([*good], dtype=pl.Int64), values, as_kept)
        return RawTable(frame, first_row, len(lines), bad_rows(lines, first_row), may_hold_nul)

    def _note_rare_keys(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Count the objects with rare keys; a late one that is called like a canonical column is named."""
        for shape, times in Counter(map(tuple, objects)).items():
            rare = [key for key in shape if key not in self._common]
            self._dropped |= dict.fromkeys(key for key in rare if canonical_name(key) is not None)
            self._with_rare_keys += times * any(canonical_name(key) is None for key in rare)

    def _frame(
        self, rows: pl.Series, values: Mapping[str, list[Any]], kept: Callable[[Any], Any]
    ) -> pl.DataFrame:
        keys = self._keys or {}
        if keys and not self._typed and len(rows):
            self._typed = True
            types = {key: kind_of(values[key]) for name, key in keys.items() if name in CANONICAL}
            self.layout = replace(self.layout, types=types)
        columns = {
            name: _texts(values[key])
            if name in CANONICAL
            else pl.Series([kept(value) for value in values[key]], dtype=pl.String)
            for name, key in keys.items()
        }
        return pl.DataFrame({"row": rows, **columns})

    def _learn(self, block: Block) -> None:
        """Fix the columns by the objects of a block: a sample, or all if only others have a known column."""
        named = {*self._options.mapping.values(), *self._options.keep}
        sample = block.data[: block.data.rfind(b"\n", 0, _SAMPLE) + 1] or block.data
        objects = _objects_for_keys(replace(block, data=sample))
        common, _ = common_keys(objects, named)
        unseen = (f'"{name}"'.encode() for name in {*CANONICAL, *named}.difference(common))
        if not objects or any(block.data.find(mark, len(sample)) >= 0 for mark in unseen):
            objects = _objects_for_keys(block)
            common, _ = common_keys(objects, named)
        if not objects:
            return
        names = [*common, *(name for name in self._options.keep if name not in common)]
        found = map_columns(names, self._options, fixed=False)
        self._keys = {name: names[place] for name, place in found.sources.items()}
        self._wanted, self._common = [*dict.fromkeys(self._keys.values())], frozenset(names)
        self._dropped = dict.fromkeys(found.dropped)
        mapping = {name: key for name, key in self._keys.items() if name in CANONICAL}
        kept = tuple(name for name in self._keys if name not in CANONICAL)
        self.layout = replace(self.layout, columns=tuple(names), mapping=mapping, kept=kept)
        self._decoders = _decoders(self._wanted, {*mapping.values()}, found.dropped)


def rare_keys(records: int) -> tuple[str, ...]:
    """Return what is listed among dropped columns for keys that may be data themselves, such as addresses."""
    return (f"keys that few records have ({plural(records, 'record')})",) if records else ()


def _decoders(
    wanted: Sequence[str], canonical: Collection[str], dropped: Sequence[str]
) -> tuple[msgspec.json.Decoder[Any], ...]:
    """Return decoders of the wanted keys, one that refuses rare keys and one that skips them.

    There are none if msgspec cannot take a wanted key: one with a quote, a backslash or a control character.
    """
    made = []
    for strict in (True, False):
        keys = [
            *wanted,
            *(key for key in dropped if strict and json.dumps(key, ensure_ascii=False) == f'"{key}"'),
        ]
        fields = [
            (f"f{n}", *((_VALUE, None) if key in canonical else (msgspec.Raw, _NULL)))
            for n, key in enumerate(keys)
        ]
        names = {f"f{n}": key for n, key in enumerate(keys)}
        try:
            line = msgspec.defstruct("Line", fields, rename=names, gc=False, forbid_unknown_fields=strict)
        except ValueError:
            return ()
        made.append(msgspec.json.Decoder(line))
    return tuple(made)


def _slices(block: Block) -> Iterator[Block]:
    """Cut a block at line ends, so that a bad line makes only its own slice slow."""
    start, size = 0, len(block.data)
    while size - start > _SLICE:
        end = block.data.find(b"\n", start + _SLICE) + 1
        yield replace(block, data=block.data[start:end])
        start = end
    if start < size or not start:
        yield replace(block, data=block.data[start:])


def _decode(decoder: msgspec.json.Decoder[Any], block: Block) -> list[Any] | None:
    """Return one object for each line; None if a line is not one object with the expected types.

    An object that spans lines has a line that does not begin with `{` or does not end with `}`.
    """
    data = block.data
    array = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(array == ord("\n"))
    last = array[ends - 1]
    if b"\r" in data:
        last = np.where(last == ord("\r"), array[ends - 2], last)
    begun = data.startswith(b"{") and bool((array[ends[:-1] + 1] == ord("{")).all())
    if not begun or (last != ord("}")).any():
        return None
    try:
        if not data.isascii():
            data.decode()
        found = decoder.decode_lines(data)
    except _BAD_LINE:
        return None
    return found if len(found) == ends.size else None


def _objects_for_keys(block: Block) -> list[Mapping[str, Any]]:
    found = _decode(_KEYS, block)
    return [line for line in read_objects(block)[0] if isinstance(line, dict)] if found is None else found


def common_keys(objects: Iterable[Mapping[str, Any]], named: Collection[str] = ()) -> tuple[list[str], int]:
    """Return the keys that can be columns, in order, and how many objects have others.

    A key is a column if at least half of the objects have it, or it is `named` or called like a canonical
    column. Any other key may be data, such as an address.
    """
    shapes, counts = Counter(map(tuple, objects)), Counter[str]()
    for shape, times in shapes.items():
        counts.update(dict.fromkeys(shape, times))
    size = shapes.total()
    common = [
        key
        for key, count in counts.items()
        if 2 * count >= size or key in named or canonical_name(key) is not None
    ]
    return common, sum(times for shape, times in shapes.items() if not {*shape}.issubset(common))


def refuse(constant: str) -> None:
    """Raise for NaN and Infinity, which Python would read and JSON does not have."""
    raise ValueError(constant)


_PARSE: Final = json.JSONDecoder(parse_constant=refuse).decode


def read_objects(block: Block) -> tuple[list[Object | str], bool]:
    """Return the object of each line, or the reason why it is none; also whether a text can hold a NUL."""
    if block.overlong:
        return [validation.FIELD_TOO_LONG], False
    may_hold_nul = b"\0" in block.data or b"\\u0000" in block.data
    escaped = _ESCAPED_SURROGATE.search(block.data) is not None
    return [_object(line, escaped) for line in block.data.split(b"\n")[:-1]], may_hold_nul


def _object(line: bytes, escaped: bool) -> Object | str:
    try:
        text = line.decode()
        return validation.NUL_BYTE if "\0" in text else checked(_PARSE(text), escaped)
    except UnicodeDecodeError:
        return validation.NOT_UTF8
    except (ValueError, RecursionError):
        return validation.NOT_JSON


def checked(value: Any, escaped: bool) -> Object | str:
    """Return an object, or the reason why it is none: half of a surrogate pair is no character."""
    if not isinstance(value, dict):
        return validation.NOT_JSON
    if escaped and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        return validation.NOT_UTF8
    return value


def as_text(value: Any) -> str | None:
    """Return a text or number as text; None for anything else."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # JSON has no way to write infinities; of a whole number no float is made, since some are too large.
    return repr(value) if isinstance(value, int) or math.isfinite(value) else None


def as_kept(value: Any) -> str | None:
    """Return any value as a text from which `from_kept` restores it: `"5"` is not `5`."""
    if value is None:
        return None
    if isinstance(value, str) and _is_no_json(value):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@lru_cache(1 << 16)
def _kept_bytes(value: bytes) -> str | None:
    return as_kept(json.loads(value))


def from_kept(text: str | None) -> Any:
    """Return the value that `as_kept` was given."""
    if text is None or _is_no_json(text):
        return text
    return json.loads(text)


def _is_no_json(text: str) -> bool:
    try:
        _PARSE(text)
    except (ValueError, RecursionError):
        return True
    return False


def kind_of(values: Sequence[Any]) -> str:
    """Return the name of the type of the first value that is not null."""
    first = next((value for value in values if value is not None), "")
    return {int: "Int64", float: "Float64"}.get(type(first), "String")


def _texts(values: list[Any]) -> pl.Series:
    """Return texts and numbers as texts; whole numbers alone stay numbers, which validation casts faster."""
    with contextlib.suppress(TypeError, OverflowError):
        return pl.Series(values, dtype=pl.String, strict=True)
    with contextlib.suppress(TypeError, OverflowError):
        if {*map(type, values)} <= {int, type(None)}:
            return pl.Series(values, dtype=pl.Int64)
    return pl.Series([as_text(value) for value in values], dtype=pl.String)


def _encode(frame: pl.DataFrame, layout: Layout, first_row: int) -> bytes:
    """Return one object a line; numbers stay numbers where the input had numbers."""
    table = layout.arrange(frame, first_row)
    columns = [_typed(table.to_series(p), c, layout) for p, c in enumerate(layout.columns)]
    kept = [place for place, column in enumerate(layout.columns) if column in layout.kept]
    if any(column is None for column in columns) or any(table.dtypes[place] == pl.String for place in kept):
        return _encode_row_by_row(table, layout)
    named = pl.DataFrame(
        {name: column for name, column in zip(layout.columns, columns, strict=True) if column is not None}
    )
    return named.write_ndjson().encode()


def _typed(column: pl.Series, name: str, layout: Layout) -> pl.Series | None:
    """Return texts as numbers where the input had numbers; None if only some of them are numbers."""
    if column.dtype != pl.String or layout.types.get(name) not in _NUMBERS or name in layout.kept:
        return column
    whole = column.cast(pl.Int64, strict=False)
    if (whole.cast(pl.String) == column).fill_null(column.is_null()).all():
        return whole
    number = column.cast(pl.Float64, strict=False)
    return number if layout.types[name] == "Float64" and number.null_count() == column.null_count() else None


def _encode_row_by_row(table: pl.DataFrame, layout: Layout) -> bytes:
    """Encode kept columns of any type, and columns of mixed types."""
    lines = []
    kinds = [(name, name in layout.kept, layout.types.get(name) in _NUMBERS) for name in layout.columns]
    for row in table.iter_rows():
        item = {
            name: _json_value(value, kept, number)
            for (name, kept, number), value in zip(kinds, row, strict=True)
        }
        lines.append(to_json(item))
    return "".join(lines).encode()


def to_json(item: Object) -> str:
    """Return an object as one line."""
    return json.dumps(item, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"


def _json_value(value: object, kept: bool, number: bool) -> object:
    if kept and isinstance(value, str):
        return from_kept(value)
    if number and isinstance(value, str):
        try:
            whole = int(value)
        except ValueError:
            return value
        return whole if str(whole) == value else value
    return value

"""`Layout`: how a file looks, apart from its records, so that a release can look like its input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from querycloak.errors import UsageError
from querycloak.files import split_compression
from querycloak.formats import registry, times
from querycloak.log import CANONICAL

STANDARD: Final = ("user", "query", "time", "rank", "url")


@dataclass(frozen=True)
class Layout:
    """Format, columns in their order, their meaning, and how times and line ends are written.

    `columns` holds every column of the file, also those that were dropped: a release has them, empty.
    `mapping` leads from canonical names to columns; `kept` are the columns passed on by name.
    `types` names the type of a column where the format has types (JSON lines, Parquet).
    """

    format: str
    columns: tuple[str, ...]
    mapping: Mapping[str, str]
    kept: tuple[str, ...] = ()
    header: bool = True
    delimiter: str = ","
    newline: str = "\n"
    time_style: str = times.RFC3339
    compression: str = ""
    types: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def default(cls, format: str, columns: Iterable[str] = STANDARD, compression: str = "") -> Layout:  # noqa: A002
        """Return the usual layout of a format for a log with these columns."""
        return registry.get(format).default_layout([n for n in columns if n != "row"], compression)

    @classmethod
    def for_output(
        cls,
        path: str | Path,
        format: str | None = None,  # noqa: A002 - the option's name
        like: Layout | None = None,
        columns: Iterable[str] | None = None,
    ) -> Layout:
        """Return the layout of an output: like the input if its format fits the path, else the default.

        `columns` names the columns of the frame to be written; those the layout lacks are added.
        """
        chosen, compression = _choose(path, format, like)
        if like is not None and like.format == chosen:
            return replace(like, compression=compression).adding(columns or ())
        if columns is None:
            columns = STANDARD if like is None else (*(n for n in CANONICAL if n in like.mapping), *like.kept)
        return cls.default(chosen, columns, compression)

    @classmethod
    def for_counts(cls, path: str | Path, columns: Iterable[str], like: Layout | None = None) -> Layout:
        """Return the layout of a table of counts: by the output's name, else by the input's format.

        Formats with fixed columns turn into `tsv`; on standard output, `ubi` turns into JSON lines.
        """
        chosen, compression = _choose(path, None, like)
        traits = registry.get(chosen).traits
        if not traits.holds_counts:
            if str(path) != "-":
                raise UsageError(
                    f"a table of counts cannot be written as {chosen}",
                    hint="name a .csv, .tsv, .jsonl or .parquet",
                )
            chosen = "jsonl"
        layout = cls.default("tsv" if traits.fixed_columns else chosen, columns, compression)
        return replace(layout, types={"count": "Int64"})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Layout:
        """Build a layout from what `as_dict` returned."""
        lists = {name: tuple(values[name]) for name in ("columns", "kept")}
        return cls(**{**values, **lists})

    def as_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return asdict(self)

    @property
    def fixed_columns(self) -> bool:
        """Whether the format can take no further columns."""
        return registry.get(self.format).traits.fixed_columns

    def adding(self, names: Iterable[str]) -> Layout:
        """Return a layout that has these columns of a frame too; one with fixed columns turns into `tsv`."""
        new = [name for name in names if name not in self.mapping and name not in self.kept and name != "row"]
        if not new:
            return self
        base = self._as_tsv() if self.fixed_columns else self
        taken = set(base.columns)
        further = registry.get(base.format).further_names
        names_in_file = {n: further.get(n) or _free_name(n, taken) for n in new if n in CANONICAL}
        kept = tuple(name for name in new if name not in CANONICAL)
        columns = (
            *base.columns,
            *(names_in_file.get(name, name) for name in new if name not in taken or name in CANONICAL),
        )
        return replace(
            base, columns=columns, mapping={**base.mapping, **names_in_file}, kept=(*base.kept, *kept)
        )

    def arrange(self, frame: pl.DataFrame, first_row: int = 0) -> pl.DataFrame:
        """Return the file's columns, named by position since names can repeat; absent ones are empty."""
        columns = []
        names = dict(zip(self.kept, self.kept, strict=True))
        names |= {column: name for name, column in reversed([*self.mapping.items()])}
        for place, column in enumerate(self.columns):
            name = names.get(column)
            if name is None or name not in frame.columns:
                values = pl.Series([None], dtype=pl.String).new_from_index(0, frame.height)
            elif name == "time" and frame.schema[name] == pl.Datetime:
                own = registry.get(self.format)
                values = own.write_time(frame[name].cast(times.TIME), self.time_style, first_row)
            else:
                values = frame[name]
            columns.append(values.alias(str(place)))
        return pl.DataFrame(columns)

    def _as_tsv(self) -> Layout:
        style = self.time_style if times.is_style(self.time_style) else times.RFC3339
        return replace(self, format="tsv", header=True, delimiter="\t", time_style=style)


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _choose(path: str | Path, format: str | None, like: Layout | None) -> tuple[str, str]:  # noqa: A002
    """Return the format of an output, and its compression."""
    possible = [] if str(path) == "-" else [one.name for one in registry.for_output(str(path))]
    compression = "" if str(path) == "-" else split_compression(str(path))[1]
    if format is not None:
        return registry.get(format).name, compression
    if str(path) != "-" and (str(path).endswith("/") or Path(path).is_dir()):
        folder = registry.folder_format().name
        return folder, like.compression if like is not None and like.format == folder else ""
    if like is not None and (not possible or like.format in possible):
        return like.format, compression
    if not possible:
        hint = f"name one with --format: {', '.join(registry.FORMATS.names())}"
        raise UsageError("the name of the output does not say its format", hint=hint)
    return possible[0], compression

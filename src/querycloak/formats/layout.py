"""`Layout`: how a file looks, apart from its records, so that a release can look like its input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from querycloak.errors import UnknownName, UsageError
from querycloak.formats import times
from querycloak.log import CANONICAL

FORMATS: Final = ("aol", "csv", "tsv", "jsonl", "parquet", "excite", "ubi")
AOL: Final = {"user": "AnonID", "query": "Query", "time": "QueryTime", "rank": "ItemRank", "url": "ClickURL"}
EXCITE: Final = {"user": "user", "time": "time", "query": "query"}
UBI: Final = {
    "user": "client_id",
    "query": "user_query",
    "time": "timestamp",
    "rank": "event_attributes.position.ordinal",
    "url": "event_attributes.object.object_id",
}
UBI_CATEGORY: Final = "query_attributes.category"
#: Formats that know no quoting: a tab or a line end inside a value cannot be written.
UNQUOTED: Final = ("aol", "excite")
STANDARD: Final = ("user", "query", "time", "rank", "url")

_DELIMITERS: Final = {"csv": ",", "tsv": "\t", "aol": "\t", "excite": "\t"}
_STYLES: Final = {"aol": times.PLAIN, "excite": times.EXCITE, "parquet": times.NATIVE}
#: Which formats an extension may stand for; the first is the one taken when nothing else decides.
_EXTENSIONS: Final = {
    ".csv": ("csv",),
    ".tsv": ("tsv", "aol", "excite"),
    ".tab": ("tsv", "aol", "excite"),
    ".txt": ("tsv", "aol", "excite", "csv"),
    ".log": ("tsv", "aol", "excite", "csv"),
    ".jsonl": ("jsonl",),
    ".ndjson": ("jsonl",),
    ".json": ("jsonl",),
    ".parquet": ("parquet",),
    ".pq": ("parquet",),
    ".ubi": ("ubi",),
}
_COMPRESSIONS: Final = {".gz": "gz", ".zst": "zst"}


@dataclass(frozen=True)
class Layout:
    """Format, columns in their order, which of them is which, and how times and line ends are written.

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

    def as_dict(self) -> dict[str, Any]:
        """Give plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Layout:
        """Build a layout from what `as_dict` gave."""
        lists = {name: tuple(values[name]) for name in ("columns", "kept")}
        return cls(**{**values, **lists})

    def name_in_frame(self, column: str) -> str | None:
        """Say which column of a log's frame belongs into a column of the file, if any does."""
        for canonical, name in self.mapping.items():
            if name == column:
                return canonical
        return column if column in self.kept else None

    def adding(self, names: Iterable[str]) -> Layout:
        """Give a layout that has these columns of a frame too; `aol` and `excite` turn into `tsv`."""
        new = [name for name in names if name not in self.mapping and name not in self.kept and name != "row"]
        if not new:
            return self
        base = self if self.format not in UNQUOTED else self._as_tsv()
        taken = set(base.columns)
        names_in_file = {name: _free_name(name, taken) for name in new if name in CANONICAL}
        if base.format == "ubi" and "category" in names_in_file:
            names_in_file["category"] = UBI_CATEGORY
        kept = tuple(name for name in new if name not in CANONICAL)
        columns = (
            *base.columns,
            *(names_in_file.get(name, name) for name in new if name not in taken or name in CANONICAL),
        )
        return replace(
            base, columns=columns, mapping={**base.mapping, **names_in_file}, kept=(*base.kept, *kept)
        )

    def _as_tsv(self) -> Layout:
        style = self.time_style if self.time_style != times.EXCITE else times.RFC3339
        return replace(self, format="tsv", header=True, time_style=style)


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def check_format(name: str) -> str:
    """Give the name back if it is a format's."""
    if name not in FORMATS:
        raise UnknownName(f"no format is called `{name}`", hint=f"the formats are {', '.join(FORMATS)}")
    return name


def split_name(path: str | Path) -> tuple[tuple[str, ...], str]:
    """Tell which formats a file's name may mean, and its compression."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes[-2:]]
    compression = _COMPRESSIONS.get(suffixes[-1], "") if suffixes else ""
    if compression:
        suffixes.pop()
    return _EXTENSIONS.get(suffixes[-1], ()) if suffixes else (), compression


def default_layout(format: str, columns: Iterable[str] = STANDARD, compression: str = "") -> Layout:  # noqa: A002
    """Give the usual layout of a format for a log with these columns."""
    wanted = [name for name in columns if name != "row"]
    fixed = {"aol": AOL, "excite": EXCITE, "ubi": UBI}.get(check_format(format))
    mapping = fixed or {name: name for name in wanted if name in CANONICAL}
    kept = () if fixed else tuple(name for name in wanted if name not in CANONICAL)
    order = tuple(fixed.values()) if fixed else tuple(wanted)
    layout = Layout(
        format=format,
        columns=order,
        mapping=dict(mapping),
        kept=kept,
        header=format not in ("excite", "jsonl", "ubi", "parquet"),
        delimiter=_DELIMITERS.get(format, ""),
        time_style=_STYLES.get(format, times.RFC3339),
        compression=compression,
    )
    return layout.adding(["category"]) if format == "ubi" and "category" in wanted else layout


def layout_for(
    path: str | Path,
    format: str | None = None,  # noqa: A002 - the word of the command line
    like: Layout | None = None,
    columns: Iterable[str] | None = None,
) -> Layout:
    """Choose how an output looks: like the input if its format fits the path, else the format's default.

    `columns` names the columns of the frame to be written; those the layout lacks are added.
    """
    chosen, compression = _choose(path, format, like)
    if like is not None and like.format == chosen:
        layout = replace(like, compression=compression)
        return layout.adding(columns or ())
    if columns is None:
        columns = STANDARD if like is None else (*(n for n in CANONICAL if n in like.mapping), *like.kept)
    return default_layout(chosen, columns, compression)


def table_layout(path: str | Path, columns: Iterable[str], like: Layout | None = None) -> Layout:
    """Choose how a table of counts looks: by the output's name, else by the input's format.

    Formats with fixed columns cannot hold one: `aol` and `excite` turn into `tsv`.
    """
    chosen, compression = _choose(path, None, like)
    if chosen == "ubi":
        if str(path) != "-":
            raise UsageError(
                "a table of counts cannot be written as ubi", hint="name a .csv, .tsv, .jsonl or .parquet"
            )
        chosen = "jsonl"
    layout = default_layout("tsv" if chosen in UNQUOTED else chosen, columns, compression)
    return replace(layout, types={"count": "Int64"})


def _choose(path: str | Path, format: str | None, like: Layout | None) -> tuple[str, str]:  # noqa: A002
    possible, compression = ((), "") if str(path) == "-" else split_name(path)
    if format is not None:
        return check_format(format), compression
    if str(path) != "-" and (str(path).endswith("/") or Path(path).is_dir()):
        return "ubi", like.compression if like is not None and like.format == "ubi" else ""
    if like is not None and (not possible or like.format in possible):
        return like.format, compression
    if not possible:
        hint = f"name one with --format: {', '.join(FORMATS)}"
        raise UsageError("the name of the output does not say its format", hint=hint)
    return possible[0], compression

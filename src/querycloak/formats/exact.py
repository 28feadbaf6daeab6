"""Whether a file holds nothing but its records: the same bytes as they are written, or the same table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import polars as pl

from querycloak import temporary_files
from querycloak.formats import registry
from querycloak.formats.layout import Layout
from querycloak.formats.output import Writer
from querycloak.formats.source import Source
from querycloak.log import Log

_FURTHER = "it holds more than the columns and records of its layout, or in another form"


def layout_fault(path: Path, log: Log, layout: Layout) -> str:
    """Return what a file holds beside the records that were read from it in this layout; "" for nothing.

    A further column, a value in a column that is not released, an unknown key, a second value of one key and
    a comment are all found: the records are written again, and the bytes are compared.
    """
    if not registry.get(layout.format).traits.same_bytes:
        return _table_fault(path, layout)
    with temporary_files.new_folder() as folder:
        again = Path(folder.path, "again")
        with Writer(again, replace(layout, compression=""), private=True) as writer:
            writer.write(log.frame)
            writer.commit()
        return "" if _same(path, again) else _FURTHER


def _same(path: Path, again: Path) -> bool:
    if not path.is_dir():
        return _same_bytes(path, again)
    names = {one.name.removesuffix(".gz").removesuffix(".zst"): one for one in path.iterdir()}
    expected = {one.name: one for one in again.iterdir()}
    return names.keys() == expected.keys() and all(_same_bytes(names[n], expected[n]) for n in names)


def _same_bytes(one: Path, other: Path) -> bool:
    with closing(Source(one)) as first, closing(Source(other)) as second:
        return all(a == b for a, b in zip_longest(_blocks(first), _blocks(second), fillvalue=b""))


def _blocks(source: Source, size: int = 1 << 20) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of one size."""
    rest = b""
    for chunk in source.chunks():
        rest += chunk
        while len(rest) >= size:
            yield rest[:size]
            rest = rest[size:]
    yield rest


def _table_fault(path: Path, layout: Layout) -> str:
    """Compare the columns of a table; those that are neither mapped nor kept must be empty."""
    table = pl.scan_parquet(path)
    if table.collect_schema().names() != list(layout.columns):
        return "its columns are not those of its layout"
    cleared = [name for name in layout.columns if name not in {*layout.mapping.values(), *layout.kept}]
    filled = table.select(pl.col(cleared).is_not_null().any()).collect() if cleared else pl.DataFrame()
    names = [name for name in filled.columns if filled[name][0]]
    return f"{len(names)} columns that are not released hold values" if names else ""

"""A plain list of one person's queries: one a line, with a time before or after it if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from querycloak.formats import times, validation
from querycloak.formats.layout import Layout
from querycloak.formats.reading import RawTable, ReadOptions
from querycloak.formats.registry import FormatTraits, LineFormat, Match
from querycloak.formats.source import Block
from querycloak.formats.validation import bad_rows

_MOMENT: Final = r"(\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:?\d{2})?)"
_TIME_FIRST: Final = rf"^{_MOMENT}[\t ,;]+(\S.*)$"
_TIME_LAST: Final = rf"^(.*\S)\s*[\t;,]\s*{_MOMENT}$"


class QueryList(LineFormat):
    """One query a line."""

    name = "list"
    traits = FormatTraits(by_line=True, single_person=True)

    def detect(self, head: bytes, file_name: str) -> Match:
        """Return that any text can be a list; formats that recognise their content come first."""
        return Match.POSSIBLE

    def parser(self, first_line: bytes, options: ReadOptions) -> QueryListParser:
        """Return a parser."""
        return QueryListParser(self.default_layout(("query", "time")))


@dataclass
class QueryListParser:
    """Parses blocks of queries."""

    layout: Layout
    dropped: tuple[str, ...] = ()

    def parse(self, block: Block, first_row: int = 0) -> RawTable:
        """Return the rows of a block, numbered from `first_row`."""
        lines = [_text(line) for line in block.data.splitlines()]
        if block.overlong:
            lines = [(None, validation.QUERY_TOO_LONG)]
        good = [row for row, (text, _) in enumerate(lines) if text is not None]
        texts = pl.DataFrame({"line": pl.Series([lines[row][0] for row in good], dtype=pl.String)})
        whole = pl.col("line")
        found = texts.select(
            row=pl.Series(good, dtype=pl.Int64) + first_row,
            query=pl.coalesce(whole.str.extract(_TIME_FIRST, 2), whole.str.extract(_TIME_LAST, 1), whole),
            time=pl.coalesce(whole.str.extract(_TIME_FIRST, 1), whole.str.extract(_TIME_LAST, 2)),
        )
        frame = found.with_columns(time=times.parse(found["time"]), query=pl.col("query").str.strip_chars())
        return RawTable(frame, first_row, len(lines), bad_rows([reason for _, reason in lines], first_row))


def _text(line: bytes) -> tuple[str | None, str | None]:
    """Return the text of a line, or the reason why it is no query."""
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        return None, validation.NOT_UTF8
    return (text, None) if text else (None, validation.NO_QUERY)

"""The Excite logs of 1997 to 2001: user, time and query, tab-separated, without header and quoting."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from querycloak.errors import DataError
from querycloak.formats.delimited import Delimited
from querycloak.formats.registry import FormatTraits, Match

NAMES: Final = {"user": "user", "time": "time", "query": "query"}
_LINE: Final = re.compile(rb"[^\t\r\n]*\t\d{12}\t[^\t\r\n]*\r?")


class Excite(Delimited):
    """Lines `user<TAB>yymmddHHMMSS<TAB>query`; years 70 to 99 are 1970 to 1999."""

    name = "excite"
    traits = FormatTraits(extensions=(".tsv", ".tab", ".txt", ".log"), by_line=True, fixed_columns=True)
    names = NAMES
    delimiter = "\t"
    default_time_style = "yymmddHHMMSS"

    def detect(self, head: bytes, file_name: str) -> Match:
        """Return how well a file fits: by its first line."""
        fits = _LINE.fullmatch(head.partition(b"\n")[0]) and not file_name.lower().endswith(".csv")
        return Match.CERTAIN if fits else Match.NO

    def parse_time(self, texts: pl.Series) -> pl.Series:
        """Return the times of texts; null for texts that are no times."""
        column = pl.col(texts.name)
        text = pl.when(column.str.contains(r"^(?-u)\d{8}[0-5]\d[0-5]\d$")).then(column)
        century = pl.when(text.str.slice(0, 2) >= "70").then(pl.lit("19")).otherwise(pl.lit("20"))
        found = (century + text).str.to_datetime("%Y%m%d%H%M%S", time_unit="us", strict=False)
        return texts.to_frame().select(found.dt.replace_time_zone("UTC").alias(texts.name)).to_series()

    def time_style(self, text: str) -> str:
        """Return the style in which a readable time is written."""
        return self.default_time_style

    def write_time(self, column: pl.Series, style: str, first_row: int) -> pl.Series:
        """Return times as texts. Raise DataError for one that the format cannot hold."""
        wrong = (column.dt.microsecond() != 0) | ~column.dt.year().is_between(1970, 2069)
        if wrong.any():
            row = first_row + int(wrong.fill_null(False).arg_true()[0])
            raise DataError(
                f"output row {row}: the format excite cannot hold the column `time` of this row",
                hint="it has no fractions of seconds, and only the years 1970 to 2069; choose another format",
            )
        return column.dt.to_string("%y%m%d%H%M%S")

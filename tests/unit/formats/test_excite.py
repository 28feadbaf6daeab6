"""Excite: two digits for the year, no fractions."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from querycloak.errors import DataError
from querycloak.formats.excite import Excite

MOMENT = datetime(2006, 3, 1, 7, 17, 12, tzinfo=UTC)


def test_times_have_two_digits_for_the_year_and_no_fractions() -> None:
    texts = pl.Series("time", ["970916071543", "240229235959", "240230000000", "9709160715", None])
    form = Excite()
    read = form.parse_time(texts)
    assert read.to_list() == [
        datetime(1997, 9, 16, 7, 15, 43, tzinfo=UTC),
        datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC),
        *[None] * 3,
    ]
    assert form.write_time(read, form.time_style(texts[0]), 0).to_list() == [*texts[:2], None, None, None]
    with pytest.raises(DataError, match="output row 8: the format excite cannot hold the column `time`"):
        form.write_time(pl.Series("time", [MOMENT, MOMENT.replace(microsecond=5)]), "yymmddHHMMSS", 7)

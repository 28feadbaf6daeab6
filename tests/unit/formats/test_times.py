"""Times: every form is read to the microsecond and written back as it came."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querycloak.formats import times

MOMENT = datetime(2006, 3, 1, 7, 17, 12, tzinfo=UTC)
SAME = [
    "2006-03-01 07:17:12",
    "2006-03-01T07:17:12",
    "2006-03-01T07:17:12Z",
    "2006-03-01 07:17:12.000",
    "2006-03-01T09:17:12+02:00",
    "2006-03-01T09:17:12.0+0200",
    "2006-03-01 01:47:12-05:30",
    "2006-03-01 09:17:12+02",
    "1141197432",
    "1141197432000",
    "1141197432000000",
]
NO_TIMES = [
    "",
    "2006-3-1 07:17:12",
    "+2006-3-01 07:17:12",
    "2006-02-30 07:17:12",
    "2006-03-01 24:00:00",
    "07:17",
    "2006-03-01 07:17:60",
    "2006-03-01",
    " 2006-03-01 07:17:12",
    "0000-01-01 00:00:00",
    "1e9",
    "٢٠٠٦",
    "1" * 18,
]


@pytest.mark.parametrize("text", SAME)
def test_each_form_is_read_and_written_back(text: str) -> None:
    read = times.parse(pl.Series("time", [text]))
    assert read.to_list() == [MOMENT]
    assert times.write(read, times.style_of(text)).to_list() == [text]


def test_forms_may_be_mixed() -> None:
    column = pl.Series("time", [*SAME, None, *NO_TIMES])
    assert times.parse(column).to_list() == [MOMENT] * len(SAME) + [None] * (1 + len(NO_TIMES))


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_is_null(text: str) -> None:
    assert times.parse(pl.Series("time", [text])).to_list() == [None]


@pytest.mark.parametrize("text", [*SAME, "2006-03-01 07:17:12.123456"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(moments=st.lists(st.none() | st.datetimes(datetime(1900, 1, 1), datetime(5000, 1, 1)), max_size=5))
def test_no_style_loses_a_microsecond(text: str, moments: list[datetime | None]) -> None:
    column = pl.Series("time", moments, dtype=pl.Datetime("us")).dt.replace_time_zone("UTC")
    assert times.parse(times.write(column, times.style_of(text)).alias("time")).to_list() == column.to_list()


def test_native_times_of_any_unit_and_zone() -> None:
    for unit in ("ms", "us", "ns"):
        naive = pl.Series("time", [MOMENT.replace(tzinfo=None)], dtype=pl.Datetime(unit))
        assert times.native(naive).to_list() == [MOMENT]
        there = naive.dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
        assert times.native(there).to_list() == [MOMENT]
    assert times.native(pl.Series("time", [MOMENT.date()])).to_list() == [datetime(2006, 3, 1, tzinfo=UTC)]


@pytest.mark.parametrize(
    "text", ["20060301", "20060301070500", "200603010705", "2006", "0", "5", "-1141197432", "315532799",
             "4102444800", "4102444800000", "315532799999", "315532799999999"],
)  # fmt: skip
def test_a_number_that_is_no_time_between_1980_and_2100_is_none(text: str) -> None:
    assert times.parse(pl.Series("time", [text])).to_list() == [None]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_times_that_would_not_be_read_as_numbers_are_written_in_words(unit: str) -> None:
    edges = [datetime(1980, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)]
    second = timedelta(seconds=1)
    moments = [edges[0] - second, edges[0], edges[1] - second, edges[1], None]
    texts = times.write(pl.Series("time", moments), f"epoch {unit}")
    assert [text is not None and "T" in text for text in texts] == [True, False, False, True, False]
    assert times.parse(texts.alias("time")).to_list() == moments

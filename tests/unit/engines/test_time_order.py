"""Order is a leak: whatever a file's order was, records come back by time, ties by row."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.engines.time_order import Spool, in_order, whole
from querycloak.log import Log
from querycloak.testing.strategies import logs

KEY = b"k" * 32


def _order(pieces) -> list[int]:
    return [row for piece in pieces for row in piece.sort("_place")["row"].to_list()]


@given(log=logs(), rows=st.integers(1, 20))
def test_pieces_of_any_size_give_the_order_of_time(log, rows):
    expected = log.sort("time", "row")["row"].to_list()
    assert _order(whole(Log(log), KEY)) == expected
    assert _order(whole(Log(log), KEY, rows)) == expected


@given(log=logs(), rows=st.integers(1, 20), runs=st.integers(1, 4))
def test_a_spool_gives_the_same_order_and_the_same_searches(tmp_path_factory, log, rows, runs):
    spool = Spool(tmp_path_factory.mktemp("spool"), KEY)
    for part in range(runs):
        spool.add(log[part * log.height // runs : (part + 1) * log.height // runs])
    pieces = list(spool.pieces(rows))
    assert _order(pieces) == log.sort("time", "row")["row"].to_list()
    if pieces:
        together = pl.concat(pieces).select("row", "_head").sort("row")
        assert together.equals(in_order(log, KEY).select("row", "_head").sort("row"))
    folder = spool.folder
    assert oct(folder.stat().st_mode)[-3:] == "700"
    spool.close()
    assert not folder.exists()


def test_a_log_without_times_comes_in_an_order_that_only_the_key_knows():
    log = pl.DataFrame({"row": range(100), "user": ["a"] * 50 + ["b"] * 50, "query": ["q"] * 100})
    order = _order(whole(Log(log), KEY))
    assert sorted(order) == list(range(100))
    assert order != list(range(100))
    assert order != _order(whole(Log(log), b"x" * 32))
    first_half = sum(row < 50 for row in order[:50])
    assert 10 < first_half < 40  # chance of leaving this band with a random order: below 10⁻⁸


def test_clicks_of_one_search_are_one_unit_and_others_are_not():
    time = pl.Series([1, 1, 1, 2, 1], dtype=pl.Datetime("us", "UTC"))
    log = pl.DataFrame(
        {"row": range(5), "user": ["a", "b", "a", "a", "a"], "query": ["q", "q", "q", "q", "r"], "time": time}
    )
    assert in_order(log, KEY)["_head"].to_list() == [0, 1, 0, 3, 4]


def test_rows_without_a_time_are_searches_of_their_own():
    time = pl.Series([None, None], dtype=pl.Datetime("us", "UTC"))
    log = pl.DataFrame({"row": [0, 1], "user": ["a", "a"], "query": ["q", "q"], "time": time})
    assert in_order(log, KEY)["_head"].to_list() == [0, 1]


@pytest.mark.parametrize("rows", [1, 7])
def test_a_log_without_times_can_be_spooled(tmp_path, rows):
    log = pl.DataFrame({"row": range(20), "user": ["a"] * 20, "query": ["q"] * 20})
    spool = Spool(tmp_path, KEY)
    spool.add(log)
    assert _order(spool.pieces(rows)) == _order(whole(Log(log), KEY))
    assert np.unique(_order(spool.pieces(rows))).size == 20
    spool.close()

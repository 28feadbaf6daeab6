"""Slices of time, orders of rows and reports of workers, without Spark: those of one machine."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from querycloak.dictionary import Dictionaries
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.log import Batch
from querycloak.spark.engine import combine
from querycloak.spark.stage_worker import TableWorker, report
from querycloak.spark.time_slices import placed
from querycloak.spark.transfer import Plan, release_order, with_times
from tests.support.logs import made_up

SWAP = {"k": 3, "level": "auto"}


def planned(rows, method, **settings):
    columns = ("user", "query", "time", "rank", "url", "category")
    return Plan(tuple(parse_stages([method], settings)), bytes(32), columns, rows, 5)


@pytest.fixture(scope="module")
def log():
    """Return rows in an order of their own, some of one moment, with times in microseconds."""
    frame = made_up(40, seed=3, categories=True).frame
    moment = frame["time"].to_physical() // 10_000_000_000
    return frame.with_columns(time=moment, row=pl.int_range(pl.len(), dtype=pl.Int64).shuffle(seed=1))


@pytest.mark.parametrize("method", ["cohort", "rules"])
@pytest.mark.parametrize("pieces", [2, 7])
def test_slices_of_time_have_the_places_of_the_whole_log(log, method, pieces):
    plan = planned(log.height, method)
    ends = np.quantile(log["time"].to_numpy(), np.arange(1, pieces) / pieces, method="lower")
    number = np.searchsorted(ends, log["time"].to_numpy())
    parts, before = [], 0
    for piece in range(pieces):
        part = log.filter(pl.Series(number == piece))
        parts.append(placed(plan, part, before))
        before += part.height
    whole = placed(plan, log, 0)
    assert whole["_head"].n_unique() < log.height
    assert whole["_seq"].max() == log.height
    assert pl.concat(parts).sort("row").equals(whole)


def test_what_the_end_of_the_log_releases_comes_after_all_other_rows(log):
    plan = planned(log.height, "swap", k=3, level=3, leftover="rollup")
    worker = TableWorker(plan, 0)
    before = worker.push(with_times(placed(plan, log, 0)).sort("_seq", "row"))
    after = worker.close()
    assert min(before.height, after.height) > 10
    assert after["_seq"].unique().to_list() == [log.height]
    assert (before["_closing"].any(), after["_closing"].all()) == (False, True)


def test_rows_of_one_moment_have_the_order_of_one_machine():
    rows, texts = np.arange(60), Dictionaries()
    plan, same = planned(60, "rules"), np.full(60, 5)
    time = rows % 3 * 1_000_000
    batch = Batch.of({"row": rows, "seq": same, "time": time}, texts)
    expected = Pipeline(list(plan.stages), plan.key, texts)._release_order(batch)
    columns = {"_row": rows, "_head": rows, "_when": same, "_which": same, "time": time}
    carried = pl.DataFrame(columns).with_columns(pl.col("time").cast(pl.Datetime("us", "UTC")))
    order = release_order(carried, plan.key)
    assert order.tolist() == expected.row.tolist()
    assert order.tolist() != np.lexsort((rows, time)).tolist()


def worked(method, *, dropped, levels, deleted):
    method.drop(np.arange(dropped), "for a reason")
    method.levels.update(levels)
    method.explanation = {"deleted": {"by_size": deleted}, "target": "same"}
    return report(method, 0)


def test_reports_of_workers_add_up_by_method():
    plan = planned(0, "swap", **SWAP)
    build = lambda: plan.whole(Dictionaries()).stages[0]  # noqa: E731
    parts = [
        worked(build(), dropped=3, levels={1: 4, 2: 1}, deleted={"1": 2}),
        worked(build(), dropped=4, levels={2: 5}, deleted={"1": 1, "2": 7}),
    ]
    done = combine([build()], [None], [*parts, report(build(), 0)])
    assert done.dropped == [{"for a reason": 7}]
    assert done.explanation == [{"deleted": {"by_size": {"1": 3, "2": 7}}, "target": "same"}]
    assert build().facts(done.tally[0]) == {"released_by_level": {"1": 0.4, "2": 0.6}}


def test_reports_of_several_methods_are_not_mixed():
    plan = planned(0, "rules")
    method = plan.whole(Dictionaries()).stages[0]
    method.drop(np.arange(2), "first")
    other = plan.whole(Dictionaries()).stages[0]
    other.drop(np.arange(5), "second")
    done = combine([method, other], [None, None], [report(other, 1), report(method, 0)])
    assert done.dropped == [{"first": 2}, {"second": 5}]

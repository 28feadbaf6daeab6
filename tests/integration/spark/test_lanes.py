"""Lanes without Spark: a method split by its key, stopped and carried on, is the method as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.sql import Row

from querycloak.dictionary import Dictionaries
from querycloak.engines import live
from querycloak.engines.pipeline import Stage
from querycloak.engines.record_store import RecordStore
from querycloak.errors import Refused
from querycloak.log import Batch
from querycloak.registry import METHODS
from querycloak.spark import state_store, transfer
from querycloak.spark.stage_worker import StreamWorker
from querycloak.spark.state_store import Lanes
from querycloak.spark.streaming import plan_of
from querycloak.spark.transfer import Plan
from tests.integration.spark.streams import SEED, cuts, expected, made_up, same


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    return made_up(30)


def planned(log: pl.DataFrame, methods: list[str], settings: dict[str, Any], parts: int = 3) -> Plan:
    return plan_of(methods, [name for name in log.columns if name != "row"], parts, SEED, None, "", settings)


def packed(plan: Plan, piece: pl.DataFrame) -> dict[int, list[bytes]]:
    """Put a piece into lanes, as a worker does: of two Spark partitions, and with `_bad` as rows have it."""
    found: dict[int, list[bytes]] = {}
    fine = [] if "_bad" in piece.columns else [pl.lit(None, pl.String).alias("_bad")]
    halves = piece.with_columns(pl.col("time").to_physical(), *fine)
    for half in halves.with_columns(_half=pl.col("user").hash() % 2).partition_by("_half", include_key=False):
        for batch in transfer.put_in_lanes(
            plan, half.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()
        ):
            for number, payload in zip(
                *(batch.column(n).to_pylist() for n in ("lane", "payload")), strict=True
            ):
                found.setdefault(number, []).append(payload)
    return found


def shown(plan: Plan, payloads: list[bytes], like: pl.DataFrame) -> pl.DataFrame:
    if not payloads:
        return like.clear()
    rows = pl.concat([transfer.unpack(payload) for payload in payloads])
    return rows.select(transfer._blanked(rows, plan)).cast(dict(like.schema))


class Store:
    """Spark's state of one lane: what was committed, and what an attempt has changed."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None
        self.entries: list[tuple[Any, ...]] = []
        self.written = self.reads = 0

    def get(self) -> Any:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value


class Journal:
    """The other face of a store: its map."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:
        self._store.entries.append((key, value))
        self._store.written += len(value[2])

    def clear(self) -> None:
        self._store.entries = []

    def iterator(self) -> Iterator[tuple[Any, ...]]:
        self._store.reads += 1
        return reversed(list(self._store.entries))  # in no order that could be relied on


class Engine:
    """All lanes of all methods of a plan, each with a store; `forget` is a worker that dies."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.stores: dict[tuple[int, int], Store] = {}

    def operator(self, place: int, number: int) -> Lanes:
        store = self.stores.setdefault((place, number), Store())
        work = Lanes(self.plan, place)
        work._head, work._journal = store, Journal(store)  # type: ignore[assignment]
        return work

    def push(self, piece: pl.DataFrame) -> list[bytes]:
        payloads = packed(self.plan, piece)
        for place in range(len(self.plan.stages)):
            after: dict[int, list[bytes]] = {}
            for number, some in payloads.items():
                rows = iter([Row(lane=number, payload=payload) for payload in some])
                for row in self.operator(place, number).handleInputRows((number,), rows, None):
                    after.setdefault(row.lane, []).append(row.payload)
            payloads = after
        return [payload for some in payloads.values() for payload in some]

    @staticmethod
    def forget() -> None:
        state_store._alive.clear()


def by_key() -> list[tuple[str, dict[str, object]]]:
    """All examples of all methods that a stream can run."""
    found = []
    for name in METHODS.names():
        for settings in METHODS.get(name).examples():
            method = Stage(name, settings).build(bytes(32), 0, texts := Dictionaries())
            splits = method.partition_key(Batch.empty(texts)) is not None
            own = method.traits(settings)
            if splits and not own.needs_whole_log and not own.system_noise:
                found.append((name, settings.as_dict()))
    return found


@pytest.mark.parametrize(("method", "settings"), by_key(), ids=lambda value: str(value)[:60])
def test_every_method_that_streams_is_the_same_in_lanes(method, settings, log, monkeypatch):
    """In small pieces, with a worker that dies now and then, and with snapshots as often as they may be."""
    monkeypatch.setattr(state_store, "LEAST", 1 << 12)
    if settings.get("overspent") == "refuse" and settings.get("budget"):
        settings = settings | {"overspent": "drop"}
    before, closing = expected(log, [method], settings)
    engine = Engine(planned(log, [method], settings))
    left: list[bytes] = []
    for number, piece in enumerate(cuts(log, 9)):
        left += engine.push(piece.sample(fraction=1, shuffle=True, seed=number))
        if number % 3 == 1:
            engine.forget()
    assert same(before, shown(engine.plan, left, before))
    ends = [
        state_store.route(engine.plan, 0, state_store.rebuilt(engine.plan, 0, entries(store)).close())
        for store in engine.stores.values()
    ]
    assert same(closing, shown(engine.plan, [payload for end in ends for _, payload in end], closing))
    assert before.height + closing.height


def entries(store: Store) -> list[dict[str, Any]]:
    return [dict(zip(state_store.ENTRY, (*key, *value), strict=True)) for key, value in store.entries]


@pytest.mark.parametrize(
    "methods", [["rules", "cohort"], ["frequent-only", "swap"], ["rules", "frequent-only", "swap"]]
)
def test_one_method_after_the_other_in_lanes(methods, log):
    settings = {f"{name}.k": 2 for name in methods if name != "rules"}
    before, _ = expected(log, methods, settings)
    engine = Engine(planned(log, methods, settings))
    left = [payload for piece in cuts(log, 4) for payload in engine.push(piece)]
    assert same(before, shown(engine.plan, left, before))
    assert before.height


def test_an_attempt_that_failed_leaves_nothing_behind(log):
    """The worker has gone on, the state has not: the next attempt goes by the state."""
    plan, pieces = planned(log, ["swap"], {"k": 3}), cuts(log, 4)
    sure, shaky = Engine(plan), Engine(plan)
    for piece in pieces[:2]:
        sure.push(piece)
    wanted = [sure.push(piece) for piece in pieces[2:]]
    Engine.forget()
    for piece in pieces[:2]:
        shaky.push(piece)
    kept = {name: (store.value, list(store.entries)) for name, store in shaky.stores.items()}
    for _ in range(2):
        for name, (value, some) in kept.items():
            shaky.stores[name].value, shaky.stores[name].entries = value, list(some)
        found = [shaky.push(pieces[2])]
    found.append(shaky.push(pieces[3]))
    assert found == wanted


def test_a_lane_that_is_alive_reads_no_journal_and_writes_what_came(log, monkeypatch):
    monkeypatch.setattr(state_store, "LEAST", 1 << 12)
    engine, pieces = Engine(planned(log, ["swap"], {"k": 30}, parts=1)), cuts(log, 40)
    came = 0
    for piece in pieces:
        came += sum(len(payload) for some in packed(engine.plan, piece).values() for payload in some)
        engine.push(piece)
    (store,) = engine.stores.values()
    assert store.reads == 1, "only the first time, when nothing was alive"
    assert store.written < 4 * came, "snapshots cost more than what they save"
    assert len(store.entries) < 40


def test_a_lane_that_lags_behind_catches_up_from_the_journal(log, monkeypatch):
    """Spark gives a partition to any worker: one that had the lane before needs only what came since."""
    engine, pieces = Engine(planned(log, ["swap"], {"k": 3}, parts=1)), cuts(log, 4)
    Engine.forget()
    engine.push(pieces[0])
    (name,) = state_store._alive
    lagging = state_store._alive[name]
    Engine.forget()
    for piece in pieces[1:3]:
        engine.push(piece)
    state_store._alive[name] = lagging
    pushed: list[int] = []
    push = StreamWorker.push
    monkeypatch.setattr(
        StreamWorker, "push", lambda run, rows: (pushed.append(rows.height), push(run, rows))[1]
    )
    engine.push(pieces[3])
    assert pushed == [piece.height for piece in pieces[1:]]


def test_a_state_of_another_plan_is_refused(log):
    engine = Engine(planned(log, ["swap"], {"k": 3}))
    engine.push(log)
    other = Engine(planned(log, ["swap"], {"k": 4}))
    other.stores = engine.stores
    with pytest.raises(Refused, match="another secret"):
        other.push(log)


@pytest.mark.parametrize(("method", "settings"), [("rules", {}), ("swap", {"k": 3})])
def test_a_bad_row_takes_no_good_one_with_it(method, settings, log):
    """Of each search with clicks the first row is bad: the others are released as if it were not there."""
    search = ("user", "query", "time")
    first = (pl.col("row") == pl.col("row").min().over(search)) & (pl.len().over(search) > 1)
    broken = log.with_columns(_bad=pl.when(first).then(pl.lit("unreadable rank")))
    bad = broken["_bad"].count()
    assert bad > 20
    before, _ = expected(log.filter(~first), [method], settings)
    engine = Engine(planned(log, [method], settings))
    left = [payload for piece in cuts(broken, 3) for payload in engine.push(piece)]
    assert same(before, shown(engine.plan, left, before))
    heads = [dict(zip(state_store._NAMES, store.value, strict=True)) for store in engine.stores.values()]
    total = {name: sum(head[name] for head in heads) for name in ("accepted", "released", "held")}
    assert total["accepted"] == log.height
    if method == "rules":
        assert total["held"] == 0, "rows wait for a search that was left out"
    assert sum(json.loads(head["dropped"]).get("unreadable rank", 0) for head in heads) == bad


def test_what_is_too_large_for_one_value_is_cut(log, monkeypatch):
    """Rows between operators, entries of the journal and snapshots, put together again by a new worker."""
    monkeypatch.setattr(transfer, "PAYLOAD", 1 << 11)
    monkeypatch.setattr(state_store, "PART", 100)
    monkeypatch.setattr(state_store, "LEAST", 1 << 12)
    before, _ = expected(log, ["rules", "cohort"], {"k": 3})
    engine = Engine(planned(log, ["rules", "cohort"], {"k": 3}, parts=2))
    left: list[bytes] = []
    snapshots = 0
    for piece in cuts(log, 4):
        assert all(len(some) > 2 for some in packed(engine.plan, piece).values())
        left += engine.push(piece)
        engine.forget()
        snapshots += sum(store.entries[0][1][1] for store in engine.stores.values())
    assert same(before, shown(engine.plan, left, before))
    parts = [len(value[2]) for store in engine.stores.values() for _, value in store.entries]
    assert max(parts) == 100
    assert snapshots


def test_late_records_are_left_out_where_the_order_matters(log):
    settings = {"z": 2, "generalise": False}
    plan = planned(log, ["z-anonymity"], settings, parts=1)
    run = StreamWorker(plan, 0)
    early, late = cuts(log, 2)
    for piece in (late, early):
        for payload in packed(plan, piece)[0]:
            run.push(transfer.unpack(payload))
    assert run.reasons()[live.OUT_OF_ORDER] > 0
    assert run.accepted == log.height


def test_released_rows_are_dealt_out_by_a_hash_that_lanes_do_not_show(log):
    """Rows of each lane lie in every part. The draws are keyed, so it is the same at every run."""
    plan = planned(log, ["rules"], {}, parts=2)
    for payloads in packed(plan, log).values():
        rows = pl.concat([transfer.unpack(payload) for payload in payloads])
        part = transfer.shuffle_lanes(rows, plan.key, 2)
        share = float(np.mean(part))
        assert abs(share - 0.5) < 6 * 0.5 / np.sqrt(rows.height)


def test_rows_are_found_whatever_their_numbers():
    waiting = RecordStore()
    numbers = np.array([5, 1 << 50, 7, 3 << 44, 11], np.int64)
    for some in (numbers[:3], numbers[3:]):
        waiting.add(pl.DataFrame({"_head": np.repeat(some, 2), "at": np.arange(2 * some.size)}))
    found, which = waiting.take(np.array([11, 5, 3 << 44], np.int64))
    assert found["at"].to_list() == [2, 3, 0, 1, 0, 1]
    assert np.asarray(which).tolist() == [0, 0, 1, 1, 2, 2]
    waiting.remove(np.array([5, 11, 99], np.int64))
    waiting.compact()
    assert waiting.count == 6

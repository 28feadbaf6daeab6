"""What workers do for `km`, without Spark between them: histories go to shards, which are worked out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels import combos

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.spark

TERMS = 8
HISTORIES = st.lists(st.sets(st.integers(0, TERMS - 1), min_size=1, max_size=6), min_size=1, max_size=12)
OWNERS = st.lists(st.integers(0, 5), min_size=12, max_size=12).map(sorted)
MARKED = st.sets(st.integers(0, TERMS - 1), min_size=1)


def table_of(histories: Any, owners: list[int], touched: set[int], gone: dict[int, Any]) -> Any:
    """Lay histories out as a worker gets them, with what shards have said of their entries."""
    said = [sorted(gone.get(number, [])) for number in range(len(histories))]
    lists = pa.list_(pa.int32())
    return pa.RecordBatch.from_pydict(
        {
            "history": pa.array(range(len(histories)), pa.int64()),
            "person": pa.array(owners[: len(histories)], pa.int64()),
            "items": pa.array([[2 * t + (t in touched) for t in sorted(h)] for h in histories], lists),
            "gone": pa.array([[one[0] for one in some] or None for some in said], lists),
            "first": pa.array([[one[1] for one in some] or None for some in said], lists),
            "second": pa.array([[one[2] for one in some] or None for some in said], lists),
        }
    )


def shuffled(batches: Any) -> list[Any]:
    """Put rows in the order that Spark would, and cut them anywhere."""
    table = pa.Table.from_batches(list(batches))
    by = [(name, "ascending") for name in ("shard", "person", "history")]
    return table.sort_by(by).combine_chunks().to_batches(max_chunksize=3)


@given(
    histories=HISTORIES,
    owners=OWNERS,
    touched=MARKED,
    k=st.integers(2, 4),
    size=st.integers(2, 4),
    begins=st.sets(st.integers(1, TERMS - 1), max_size=4).map(sorted).map(tuple),
)
def test_workers_together_do_what_one_sweep_does(histories, owners, touched, k, size, begins):
    from querycloak.engines.spark import km_shards

    every = sweep = km_shards.Sweep(k, size, begins, frozenset(range(len(begins) + 1)))
    told: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    while sweep.todo:
        gone: dict[int, Any] = {}
        for (_, history), entries in told.items():
            gone.setdefault(history, []).extend(entries)
        batch = table_of(histories, owners, touched, gone)
        said = [row for part in km_shards.work(_sent(batch, sweep), sweep) for row in part.to_pylist()]
        new = {
            (r["shard"], r["history"]): list(zip(r["item"], r["first"], r["second"], r["size"], strict=True))
            for r in said
        }
        old = {key: entries for key, entries in told.items() if key[0] in sweep.todo}
        changed: dict[int, int] = {}
        for shard, history in (key for key in {*old, *new} if old.get(key) != new.get(key)):
            changed[history] = min(shard, changed.get(history, shard))
        told = {key: entries for key, entries in told.items() if key[0] not in sweep.todo} | new
        sweep = replace(every, todo=_reached(batch, changed, every))
    deleted = {(h, entry[0]) for (_, h), entries in told.items() for entry in entries}
    assert deleted == _deleted_at_once(histories, owners, touched, k, size)


def _sent(batch: Any, sweep: Any) -> list[Any]:
    from querycloak.engines.spark import km_shards

    sent = list(km_shards.spread([batch], sweep))
    return shuffled(sent) if sent else []


def _reached(batch: Any, changed: dict[int, int], every: Any) -> frozenset[int]:
    from querycloak.engines.spark import km_shards

    some = batch.take(pa.array(sorted(changed), pa.int64()))
    some = some.append_column("changed", pa.array([changed[h] for h in sorted(changed)], pa.int32()))
    (found,) = km_shards.reached([some], every)
    return frozenset(found.column("shard").to_pylist())


def _deleted_at_once(
    histories: Any, owners: list[int], touched: set[int], k: int, size: int
) -> set[tuple[int, int]]:
    start = np.concatenate([[0], np.cumsum([len(history) for history in histories])]).astype(np.int64)
    rank = np.array([term for history in histories for term in sorted(history)], np.int64)
    number = np.repeat(np.arange(len(histories)), np.diff(start))
    flags = np.isin(np.arange(TERMS), sorted(touched)).view(np.uint8)
    done = combos.sweep(start, rank, np.array(owners)[number], TERMS, k, size, flags)
    return set(zip(number[~done.alive].tolist(), rank[~done.alive].tolist(), strict=True))


@given(
    histories=HISTORIES, k=st.integers(2, 3), begins=st.sets(st.integers(1, TERMS - 1)).map(sorted).map(tuple)
)
def test_looks_of_workers_add_up(histories, k, begins):
    from querycloak.engines.spark import km_shards

    owners, all_terms = list(range(12)), set(range(TERMS))
    sweep = km_shards.Sweep(k, 3, begins, frozenset(range(len(begins) + 1)))
    found = np.zeros((4, TERMS), np.int64)
    for part in km_shards.look(_sent(table_of(histories, owners, all_terms, {}), sweep), sweep):
        for row in part.to_pylist():
            found[row["size"], row["rank"]] += row["count"]
    start = np.concatenate([[0], np.cumsum([len(history) for history in histories])]).astype(np.int64)
    rank = np.array([term for history in histories for term in sorted(history)], np.int64)
    person = np.repeat(np.arange(len(histories)), np.diff(start))
    expected = combos.sweep(start, rank, person, TERMS, k, 3, np.ones(TERMS, np.uint8), only_look=True)
    assert found[2:].tolist() == expected.frequent[2:4].tolist()


def test_shards_begin_where_they_would_be_too_much():
    from querycloak.engines.spark import km_shards

    batch = table_of([{0, 1, 2}, {1, 2}], [0, 1], set(range(TERMS)), {})
    (found,) = km_shards.cut([batch], room=3)
    assert found.column("begin").to_pylist() == [2]
    (found,) = km_shards.cut([], room=3)
    assert found.num_rows == 0


@given(
    histories=HISTORIES,
    owners=OWNERS,
    k=st.integers(2, 3),
    m=st.integers(2, 4),
    target=st.sampled_from(["", "distinct", "fis"]),
)
def test_one_worker_ends_what_shards_began(histories, owners, k, m, target):
    from querycloak.engines.spark import km_gathered
    from querycloak.methods import targets
    from querycloak.methods.deletion import Deletion, Entries

    pairs = [(h, owners[h], t) for h, history in enumerate(histories) for t in sorted(history)]
    frame = pl.DataFrame(pairs, schema=["history", "person", "rank"], orient="row")
    enough = frame.group_by("rank").agg(pl.col("person").n_unique()).filter(pl.col("person") >= k)
    frame = frame.join(enough.select("rank"), on="rank", how="semi", maintain_order="left")
    rows = frame.with_columns(pl.col("rank").cast(pl.Int32), touched=pl.lit(True), tie=pl.col("rank"))
    batches = rows.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches(max_chunksize=5)
    told = [
        r
        for part in km_gathered._finish(batches, km_gathered.Rest(k, m, 2, target))
        for r in part.to_pylist()
    ]
    history, person, term = (frame[name].to_numpy() for name in ("history", "person", "rank"))
    nothing = np.zeros(term.size, np.int64)
    tie = np.arange(TERMS).astype(np.uint64)
    entries = Entries(history, person, term, nothing, tie, nothing.view(np.uint64))
    rules = (
        targets.deletion(target, k, m, entries, None)
        if target
        else Deletion(k, m, lambda n, _: [np.zeros(n.terms)])
    )
    outcome = rules.run(entries)
    alive = {(r["history"], r["rank"]) for r in told if r["history"] is not None}
    assert alive == set(zip(history[outcome.alive].tolist(), term[outcome.alive].tolist(), strict=True))

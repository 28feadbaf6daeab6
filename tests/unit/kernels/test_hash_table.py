from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels import order, siphash
from querycloak.kernels.hash_table import PairTable, find, put, remove
from tests.reference import naive

small = st.integers(-3, 3)
steps = st.lists(st.tuples(st.booleans(), small, small, st.integers(-9, 9)), max_size=200)


@given(steps=steps)
def test_a_table_behaves_like_a_dict(steps):
    table, model = PairTable(), {}
    table._allocate(64)  # tight, so that searches wrap around
    for adds, first, second, value in steps:
        a, b = np.int64(first), np.int64(second)
        slot = find(table.first, table.second, table.full, a, b)
        assert bool(table.full[slot]) == ((a, b) in model)
        if adds:
            put(*table.arrays, slot, a, b, value)
            model[a, b] = value
        elif table.full[slot]:
            remove(*table.arrays, slot)
            del model[a, b]
    items = table.items()
    assert list(zip(items["first"].tolist(), items["second"].tolist(), strict=True)) == sorted(model)
    assert items["value"].tolist() == [model[pair] for pair in sorted(model)]


@given(keys=st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), small), unique=True, max_size=300))
def test_a_table_grows_and_comes_back_from_its_items(keys):
    first = np.array([a for a, _ in keys], np.int64)
    second = np.array([b for _, b in keys], np.int64)
    table = PairTable.of(first, second, np.arange(len(keys)))
    table.reserve(5000)
    assert len(table) == len(keys)
    for number, (a, b) in enumerate(zip(first, second, strict=True)):
        slot = find(table.first, table.second, table.full, a, b)
        assert table.full[slot]
        assert table.value[slot] == number


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=120))
def test_searches_are_found_as_the_naive_twin_finds_them(rows):
    time = np.array([t for t, _ in rows], np.int64)
    what = np.array([w for _, w in rows], np.int64)
    row = np.arange(len(rows)) * 3
    by_time = np.lexsort((row, time))
    expected = naive.heads(time.tolist(), what.tolist(), row.tolist())
    assert order.heads(time, what, row, by_time, -1).tolist() == expected
    alone = order.heads(time, what, row, by_time, 3)
    assert [h for h, t in zip(alone.tolist(), time, strict=True) if t == 3] == row[time == 3].tolist()


@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=60))
def test_rows_of_one_moment_are_ordered_by_time_then_by_a_keyed_hash(rows):
    rows = sorted(rows, key=lambda each: each[0])
    seq, time = (np.array([each[i] for each in rows], np.int64) for i in (0, 1))
    row = np.arange(len(rows))
    words = siphash.key_words(b"k" * 16)
    found = order.within_moments(seq, time, row, *words, np.uint64(1))
    ties = siphash.draw(b"k" * 16, 1, row)
    assert found.tolist() == np.lexsort((ties, time, seq)).tolist()

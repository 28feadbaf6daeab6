from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels import askers, order, siphash, sliding
from querycloak.kernels.tables import PairTable, find, put, remove
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


records = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=60)


@given(records=records, k=st.integers(2, 4))
def test_askers_equal_the_naive_count(records, k):
    query = np.array([q for q, _ in records], np.int64)
    user = np.array([u for _, u in records], np.int64)
    seq = np.arange(1, len(records) + 1)
    queries, pairs = PairTable(), PairTable()
    askers.admit(query, user, seq, k, *queries.arrays, *pairs.arrays)
    expected = naive.opened(query.tolist(), user.tolist(), seq.tolist(), k)
    found = askers.opened_at(query, *queries.arrays).tolist()
    assert found == [expected.get(q, -1) for q in query.tolist()]


events = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(-1, 2), st.integers(0, 3), st.integers(0, 30)), max_size=60
)


@given(events=events, span=st.integers(1, 15), z=st.integers(1, 3))
def test_sliding_counts_equal_the_naive_ones(events, span, z):
    keys = np.array([(a, 10 + b if b >= 0 else -1) for a, b, _, _ in events], np.int64).reshape(-1, 2)
    user = np.array([u for _, _, u, _ in events], np.int64)
    time = np.array([t for _, _, _, t in events], np.int64)
    queue = np.empty((4, keys.size), np.int64)
    clock, ends = np.array([-(2**62), 0]), np.array([0, 0])
    tables = PairTable().arrays + PairTable().arrays
    found = sliding.expose(keys, user, time, span, z, clock, ends, *queue, *tables)
    assert found.tolist() == naive.exposed(keys.tolist(), user.tolist(), time.tolist(), span, z)


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

"""Records that wait are found by their search, whatever the order in which they came and went."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from querycloak.engines import record_store
from querycloak.engines.record_store import RecordStore
from tests.reference.naive_record_store import NaiveRecordStore


def frame(heads: list[int], sizes: list[int], at: int = 0) -> pl.DataFrame:
    head = np.repeat(np.array(heads, np.int64), sizes)
    row = head * 10 + np.concatenate([np.arange(size) for size in sizes]) if head.size else head
    return pl.DataFrame({"row": row, "_head": head, "_at": np.full(head.size, at), "query": row.astype(str)})


pieces = st.lists(
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 3)), min_size=1, max_size=12), max_size=6
)


@given(pieces=pieces, data=st.data(), scale=st.sampled_from([1, 1_000_000]))
def test_it_gives_and_keeps_what_a_list_does(pieces, data, scale):
    store, naive, known, used = RecordStore(), NaiveRecordStore(), [], set()
    for number, piece in enumerate(pieces):
        fresh = {head * scale: size for head, size in piece if head * scale not in used}
        used |= fresh.keys()  # the number of a search never comes back
        made = frame(list(fresh), list(fresh.values()), number)
        store.add(made)
        naive.add(made)
        known += fresh
        wanted = data.draw(st.lists(st.sampled_from(known), unique=True)) if known else []
        found, which = store.take(np.array(wanted, np.int64))
        which = np.arange(len(wanted)) if isinstance(which, slice) else which
        rows = found["row"].to_list() if wanted else []
        assert list(zip(rows, which.tolist(), strict=True)) == naive.take(wanted)
        gone = wanted[: data.draw(st.integers(0, len(wanted)))]
        store.remove(np.array(gone, np.int64))
        naive.remove(gone)
        known = [head for head in known if head not in gone]
        store.compact()
        left = store.rows()
        assert sorted([] if left is None else left["row"].to_list()) == sorted(naive.rows())
        assert store.count == len(naive.rows())


def test_an_empty_store_still_knows_its_columns():
    store = RecordStore()
    store.add(frame([], []))
    found, _ = store.take(np.empty(0, np.int64))
    assert found.columns == ["row", "_at", "query"]


def test_adding_a_piece_does_not_copy_what_waits(monkeypatch):
    """Before, every piece copied all records that waited: 30 pieces cost 450 pieces."""
    copied = []
    concat = pl.concat
    monkeypatch.setattr(
        record_store.pl, "concat", lambda parts, **more: copied.append(parts) or concat(parts, **more)
    )
    store = RecordStore()
    for piece in range(30):
        heads = list(range(piece * record_store._SMALL, (piece + 1) * record_store._SMALL))
        store.compact()
        store.add(frame(heads, [1] * len(heads)))
    assert copied == []
    assert store.count == 30 * record_store._SMALL


def test_small_pieces_are_merged():
    store = RecordStore()
    for piece in range(1000):
        store.add(frame([piece], [1]))
        store.compact()
    assert len(store._chunks) < 12

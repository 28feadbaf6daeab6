"""Counts for the profiles: each released record once, also when the store is away for a while."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from querycloak.errors import StoreUnavailable
from querycloak.service.sinks.profiles import SECONDS, ProfileCounter


class Store:
    """Counts what it is given as a database would, and can be away; `kept` then says whether it noted it."""

    def __init__(self) -> None:
        self.last, self.away, self.kept = 0, False, False
        self.counted: Counter[str] = Counter()
        self.forgotten: list[str] = []
        self._real_last = 0

    def add(self, upto, counts):
        if not self.away or self.kept:
            if upto > self._real_last:
                for label, _, more in counts:
                    self.counted[label] += more
            self._real_last = max(self._real_last, upto)
        if self.away:
            raise StoreUnavailable("away")
        self.last = self._real_last

    def delete(self, label):
        self.forgotten.append(label)


def released(first: int, last: int) -> pl.DataFrame:
    offsets = range(first, last + 1)
    return pl.DataFrame(
        {"offset": offsets, "user": ["p1"] * len(offsets), "category": ["Arts"] * len(offsets)}
    )


@pytest.mark.parametrize("kept", [False, True])
def test_what_comes_while_the_store_is_away_is_counted_once(kept):
    """`kept`: the store had counted, and only its answer was lost."""
    store = Store()
    tally = ProfileCounter(store)
    tally.add(released(1, 100))
    store.away, store.kept = True, kept
    with pytest.raises(StoreUnavailable):
        tally.flush()
    tally.add(released(101, 200))
    with pytest.raises(StoreUnavailable):
        tally.flush()
    store.away = False
    tally.flush()
    assert (store.counted["p1"], store.last) == (200, 200)
    tally.add(released(201, 300))
    tally.flush()
    assert (store.counted["p1"], store.last) == (300, 300)


def test_a_refused_write_is_due_at_once_and_then_no_more():
    store, now = Store(), 0.0
    tally = ProfileCounter(store, clock=lambda: now)
    tally.add(released(1, 10))
    assert not tally.due()
    now += SECONDS
    assert tally.due()
    store.away = True
    with pytest.raises(StoreUnavailable):
        tally.flush()
    assert tally.due()
    store.away = False
    tally.flush()
    assert not tally.due()
    assert store.counted["p1"] == 10


def test_records_that_come_again_are_not_counted_again():
    """After a restart the stream gives out again what outlets may lack: all, some or none of it."""
    store = Store()
    store.last = store._real_last = 50
    tally = ProfileCounter(store)
    tally.add(released(1, 40))
    tally.add(released(41, 60))
    tally.add(released(55, 70))
    tally.flush()
    assert (store.counted["p1"], store.last) == (20, 70)


def test_a_label_is_forgotten_only_once_its_counts_are_written():
    store = Store()
    tally = ProfileCounter(store)
    tally.add(released(1, 10))
    store.away = True
    with pytest.raises(StoreUnavailable):
        tally.delete("p1")
    assert store.forgotten == []
    store.away = False
    tally.delete("p1")
    assert (store.counted["p1"], store.forgotten) == (10, ["p1"])


def test_a_sync_stores_all_counts_and_waits_for_the_disk():
    store, synced = Store(), []
    store.sync = lambda: synced.append(store.last)
    tally = ProfileCounter(store)
    tally.add(released(1, 5))
    tally.sync()
    assert synced == [5]

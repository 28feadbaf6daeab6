"""Exact counts of users and items: right for every order, and cheap however many are held."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.methods import dp_counts
from querycloak.methods.dp_counts import ItemCounts

entries = st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6), max_size=8)


def add(counts, part):
    counts.add(*(np.array([entry[i] for entry in part], np.int64) for i in range(2)))


def expected(pairs):
    return [[*pair, n] for pair, n in sorted(Counter(pairs).items())]


@given(entries, st.sets(st.integers(0, 3)), st.booleans())
def test_counts_are_those_of_a_dictionary(parts, erased, stored):
    counts = ItemCounts()
    for part in parts:
        add(counts, part)
        if stored:
            cells, counts = counts.cells(), ItemCounts()
            counts.replace(cells)
    pairs = [pair for part in parts for pair in part]
    assert counts.cells().T.tolist() == expected(pairs)
    counts.erase(np.array(sorted(erased), np.int64))
    assert counts.cells().T.tolist() == expected(pair for pair in pairs if pair[0] not in erased)


@pytest.mark.parametrize("different", [10, 100_000])
def test_the_work_of_a_push_does_not_grow_with_what_is_held(monkeypatch, different):
    """All entries that any merge looks at are few times those that were added."""
    looked_at = []
    merge = ItemCounts._merge

    def counted(self):
        looked_at.append(self._pair.size + self._unmerged)
        merge(self)

    monkeypatch.setattr(ItemCounts, "_merge", counted)
    counts, pushes, size = ItemCounts(), 1000, 100
    for push in range(pushes):
        number = np.arange(push * size, (push + 1) * size) % different
        counts.add(number // 7, number % 7)
    assert counts.cells()[2].sum() == pushes * size
    assert sum(looked_at) <= 4 * pushes * size + dp_counts._UNMERGED

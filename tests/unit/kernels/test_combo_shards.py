"""Sweeps worked out in stretches of ranks are the sweep of one place, however they are cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels import combo_shards, combos

TERMS = 8
HISTORIES = st.lists(st.sets(st.integers(0, TERMS - 1), min_size=1, max_size=6), min_size=1, max_size=12)


def laid_out(histories, owners):
    start = np.concatenate([[0], np.cumsum([len(history) for history in histories])]).astype(np.int64)
    rank = np.array([term for history in histories for term in sorted(history)], np.int64)
    owner = sorted(owners[: len(histories)])
    return start, rank, np.repeat(np.array(owner, np.int64), np.diff(start))


def in_shards(start, rank, person, k, m, touched, begins):
    """Work out all shards at once, again and again, each knowing what the others last said."""
    history = np.repeat(np.arange(start.size - 1), np.diff(start))
    shard = np.searchsorted(begins, rank, side="right")
    first = np.full(rank.size, combo_shards.NEVER)
    second, size, rounds = np.full(rank.size, combo_shards.NONE), np.zeros(rank.size, np.int64), 0
    while True:
        told = first.copy(), second.copy(), size.copy()
        for one in range(len(begins) + 1):
            mine = shard == one
            sent = np.flatnonzero(np.isin(history, history[mine]) & (shard <= one))
            starts = np.append(np.flatnonzero(np.diff(history[sent], prepend=-1)), sent.size)
            done = combo_shards.sweep(
                starts.astype(np.int64),
                rank[sent],
                person[sent],
                begins[one - 1] if one else 0,
                k,
                m,
                touched,
                (first[sent], second[sent]),
            )
            own = mine[sent]
            for old, new in zip(told, (done.first, done.second, done.size), strict=True):
                old[sent[own]] = new[own]
        rounds += 1
        if all(np.array_equal(old, new) for old, new in zip((first, second), told, strict=False)):
            return first == combo_shards.NEVER, size, rounds
        first, second, size = told


@given(
    histories=HISTORIES,
    owners=st.lists(st.integers(0, 5), min_size=12, max_size=12),
    k=st.integers(2, 4),
    m=st.integers(2, 4),
    touched=st.none() | st.sets(st.integers(0, TERMS - 1)),
    begins=st.sets(st.integers(1, TERMS - 1), max_size=4),
)
def test_the_shards_agree_on_what_one_place_deletes(histories, owners, k, m, touched, begins):
    start, rank, person = laid_out(histories, owners)
    marked = None if touched is None else np.array(sorted(touched), np.int64)
    flags = np.isin(np.arange(TERMS), range(TERMS) if touched is None else sorted(touched)).view(np.uint8)
    expected = combos.sweep(start, rank, person, TERMS, k, m, flags)
    alive, size, rounds = in_shards(start, rank, person, k, m, marked, sorted(begins))
    assert alive.tolist() == expected.alive.tolist()
    counted = np.bincount(size, minlength=combos.LARGEST + 1)
    assert counted[2:].tolist() == expected.deleted[2:].tolist()
    assert rounds <= len(begins) + 2  # one more to see that nothing changes


@given(
    histories=HISTORIES, k=st.integers(2, 3), m=st.integers(2, 4), begins=st.sets(st.integers(1, TERMS - 1))
)
def test_looks_add_up(histories, k, m, begins):
    start, rank, person = laid_out(histories, list(range(12)))
    history = np.repeat(np.arange(start.size - 1), np.diff(start))
    expected = combos.sweep(start, rank, person, TERMS, k, m, np.ones(TERMS, np.uint8), only_look=True)
    found = np.zeros_like(expected.frequent)
    for low, high in zip([0, *sorted(begins)], [*sorted(begins), TERMS], strict=True):
        sent = np.flatnonzero(np.isin(history, history[(rank >= low) & (rank < high)]) & (rank < high))
        starts = np.append(np.flatnonzero(np.diff(history[sent], prepend=-1)), sent.size)
        nothing = np.full(sent.size, combo_shards.NEVER), np.full(sent.size, combo_shards.NONE)
        seen = combo_shards.sweep(
            starts.astype(np.int64), rank[sent], person[sent], low, k, m, None, nothing, only_look=True
        )
        found[:, seen.names] += seen.frequent
    assert found.tolist() == expected.frequent.tolist()


@given(histories=HISTORIES, room=st.integers(1, 40), marked=st.sets(st.integers(0, TERMS - 1)))
def test_a_stretch_takes_no_more_than_its_room_unless_it_is_one_term(histories, room, marked):
    start, rank, _ = laid_out(histories, list(range(12)))
    touched = np.isin(rank, sorted(marked))
    begins = combo_shards.cuts(start, rank, touched, room).tolist()
    assert begins == sorted(set(begins))
    for low, high in zip([0, *begins], [*begins, TERMS], strict=True):
        load, heavy = 0, set()
        for begin, end in pairwise(start.tolist()):
            met = np.cumsum(touched[begin:end]) > 0
            reach = np.flatnonzero((rank[begin:end] >= low) & (rank[begin:end] < high) & met)
            load += int(reach[-1]) + 1 if reach.size else 0
            heavy |= set(rank[begin:end][reach].tolist())
        assert load <= room or len(heavy) == 1

"""Phrases that share draws: groups depend on numbers of phrases alone, and who gets what on chance.

Seeded; the test of chance would raise a false alarm for one key in a million.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from querycloak.accounting import group_count
from querycloak.methods.dp_semantic.draws import centroids, dealt
from tests.reference.small_concepts import Small

SMALL = Small.at_random(4, 14)
SPACE = SMALL.space("sqc1")
HISTORIES = st.lists(st.sampled_from(SMALL.labelled), min_size=1, max_size=15)


def alike(one, other):
    return float(SPACE.similarities(np.array([one]), np.array([other]))[0])


@given(HISTORIES)
def test_one_group_is_shown_by_its_most_central_concept(history):
    (middle,), sizes = centroids(np.array(history), len(history) + 1, SPACE)
    likeness = {one: sum(alike(one, other) for other in history) for one in history}
    assert sizes.tolist() == [len(history)]
    assert likeness[int(middle)] >= max(likeness.values()) - 1e-9


@given(HISTORIES, st.integers(2, 5))
def test_a_group_is_shown_by_one_of_its_own(history, size):
    middles, _ = centroids(np.array(history), size, SPACE)
    assert Counter(middles.tolist()) <= Counter(history)


@given(
    st.lists(st.sampled_from(SMALL.labelled), min_size=1, max_size=5, unique=True),
    st.integers(2, 4),
    st.randoms(),
)
def test_equal_phrases_are_grouped_together(concepts, size, rng):
    history = rng.sample(concepts * size, len(concepts) * size)
    middles, sizes = centroids(np.array(history), size, SPACE)
    assert sorted(middles.tolist()) == sorted(concepts)
    assert sizes.tolist() == [size] * len(concepts)


@given(HISTORIES, HISTORIES, st.integers(2, 5))
def test_numbers_and_sizes_tell_nothing_about_a_history(one, other, size):
    length = min(len(one), len(other))
    sizes = [centroids(np.array(h[:length]), size, SPACE)[1].tolist() for h in (one, other)]
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) == group_count(length, size) == max(length // size, 1)
    assert sum(sizes[0]) == length
    assert all(size <= n < 2 * size for n in sizes[0]) or length < size


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 10**6))
def test_dealing_loses_nothing_and_goes_by_place_alone(sizes, row):
    slots = 64 * row + np.arange(sum(sizes))
    first, second = (
        dealt(np.arange(len(sizes)) + shift, np.array(sizes), b"k" * 32, slots) for shift in (0, 50)
    )
    assert Counter(first.tolist()) == dict(enumerate(sizes))
    assert (second - first == 50).all(), "the same places, whatever was drawn"


def test_every_order_is_as_likely_as_any_other():
    found = Counter()
    for row in range(24_000):
        found[
            tuple(dealt(np.arange(4), np.ones(4, np.int64), b"k" * 32, 64 * row + np.arange(4)).tolist())
        ] += 1
    seen = np.array([found[order] for order in permutations(range(4))])
    assert stats.chi2.sf(((seen - 1000) ** 2 / 1000).sum(), 23) > 1e-6

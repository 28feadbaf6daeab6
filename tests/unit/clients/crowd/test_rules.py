"""The crowd's rules, worked by hand and against vectors that are written out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.clients.crowd import rules
from tests.reference import naive_crowd

fractions = st.floats(0, 1, exclude_max=True)


def weights_of(friends_of, copies, share, begin):
    weights = [0] * (len(friends_of) + 1)
    rules.cut_weights(friends_of, copies, share, begin, weights)
    return weights


@pytest.mark.parametrize(
    ("share", "begin", "left"),
    [(0.0, 0.0, [1, 2, 3]), (0.5, 0.0, [0, 0, 3]), (0.5, 0.5, [1, 2, 0]), (0.5, 0.9, [0, 1, 2])],
)
def test_an_interval_is_cut_out(share, begin, left):
    """The vector is U A A B B B; the last interval begins at its last place and goes on at the first."""
    assert weights_of([2, 3], 1, share, begin) == left


@given(
    friends_of=st.lists(st.integers(1, 10), max_size=10),
    copies=st.integers(1, 5),
    share=fractions,
    begin=fractions,
)
def test_weights_are_what_is_left_of_the_written_vector(friends_of, copies, share, begin):
    left = naive_crowd.vector(0, dict(enumerate(friends_of, 1)), copies, share, begin)
    count = Counter(left)
    assert weights_of(friends_of, copies, share, begin) == [count[who] for who in range(len(friends_of) + 1)]


@given(weights=st.lists(st.integers(0, 9), min_size=1, max_size=8), data=st.data())
def test_draws_are_in_proportion_to_the_weights_of_those_not_asked(weights, data):
    asked = data.draw(st.lists(st.booleans(), min_size=len(weights), max_size=len(weights)))
    left = [0 if gone else weight for weight, gone in zip(weights, asked, strict=True)]
    whole = sum(left)
    found = Counter(
        rules.draw_weighted(weights, asked, (i + 0.5) / max(whole, 1)) for i in range(max(whole, 1))
    )
    if not whole:
        assert set(found) == {-1}
    else:
        assert [found[who] for who in range(len(weights))] == left


@given(friends=st.integers(0, 8), data=st.data())
def test_forwarding_gives_everybody_the_same_chance(friends, data):
    refusing = data.draw(st.sets(st.integers(1, friends))) if friends else set()
    asked = [who in refusing for who in range(friends + 1)]
    left = [who for who in range(friends + 1) if who not in refusing]
    found = [
        rules.draw_forward(friends, asked, len(refusing), (i + 0.5) / len(left)) for i in range(len(left))
    ]
    assert found == left


def test_trust_falls_by_one_and_rises_by_two_penalties_and_stays_between_0_and_1():
    assert rules.after_loss(0.5, 0.03) == pytest.approx(0.47)
    assert rules.after_answer(0.5, 0.03) == pytest.approx(0.56)
    assert rules.after_loss(0.01, 0.03) == rules.after_loss(0.02, 0.03) == 0.0
    assert rules.after_answer(0.99, 0.03) == 1.0
    assert [rules.accepts(0.5, draw) for draw in (0.0, 0.49, 0.5, 0.99)] == [True, True, False, False]
    assert not rules.accepts(0.0, 0.0)
    assert rules.accepts(1.0, np.nextafter(1.0, 0.0))

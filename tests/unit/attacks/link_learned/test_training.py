"""Training pairs, and functions that learn what tells pairs apart."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks.link_learned import training
from querycloak.errors import MissingExtra

pytestmark = pytest.mark.learn


def flags(text):
    return np.array([letter == "F" for letter in text])


def test_a_lesson_is_the_beginning_of_a_trace():
    """Two real searches are history; the fake between the second and the third comes after."""
    user = np.array([5, 5, 5, 3, 5, 5, 3])
    found = training.lessons(user, flags("FRRRFRF"), first=2)
    assert [(lesson.real.tolist(), lesson.fake.tolist()) for lesson in found] == [([1, 2], [0])]


def test_the_fakes_that_follow_the_last_real_search_are_not_seen():
    found = training.lessons(np.zeros(5, np.int64), flags("RFRFR"), first=2)
    assert (found[0].real.tolist(), found[0].fake.tolist()) == ([0, 2], [1])


@pytest.mark.parametrize("text", ["RF", "RRR", "FFF", "R"])
def test_who_shows_no_pair_of_each_kind_teaches_nothing(text):
    assert training.lessons(np.zeros(len(text), np.int64), flags(text), first=130) == []


@given(st.integers(2, 12), st.integers(1, 12), st.integers(1, 40), st.integers(0, 9))
def test_pairs_are_balanced_different_and_of_their_kind(real, fake, most, seed):
    lesson = training.TrainingTrace(np.arange(real) * 2, np.arange(fake) * 2 + 1)
    first, second, same = training.pairs([lesson], most, np.random.default_rng(seed))
    assert same.sum() * 2 == same.size == 2 * min(most, real * (real - 1) // 2, real * fake)
    assert (((first % 2 == 0) & (second % 2 == 0)) == same).all()
    assert ((first % 2 == 0) | (second % 2 == 0)).all()
    assert len({frozenset(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)}) == same.size
    assert (first < second).all()


@given(st.integers(2, 12), st.integers(1, 12), st.integers(1, 40), st.integers(0, 9))
def test_pairs_of_two_fakes_are_linked_where_they_are_asked_for(real, fake, most, seed):
    lesson = training.TrainingTrace(np.arange(real) * 2, np.arange(fake) * 2 + 1)
    first, second, same = training.pairs([lesson], most, np.random.default_rng(seed), fakes=True)
    odd = (first % 2) + (second % 2)
    counts = np.bincount(odd, minlength=3)
    assert (same == (odd != 1)).all()
    assert counts[2] == (counts[0] if fake > 1 else 0)
    assert counts[1] == counts[0] + counts[2]
    assert len({frozenset(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)}) == same.size


def test_every_pair_of_two_can_be_drawn():
    lesson = training.TrainingTrace(np.arange(5), np.arange(5, 25))
    first, second, same = training.pairs([lesson], 1000, np.random.default_rng(0))
    found = {(a, b) for a, b, s in zip(first.tolist(), second.tolist(), same, strict=True) if s}
    assert found == {(a, b) for a in range(5) for b in range(a + 1, 5)}


def marked(marker, noise_columns=3, seed=0):
    """Relations of which the first is whether both events carry the marker; the rest is noise."""
    chance = np.random.default_rng(seed)

    def relate(first, second):
        found = chance.random((first.size, noise_columns + 1)).astype(np.float32)
        found[:, 0] = marker[first] == marker[second]
        return found

    return relate


def people(number=4, each=30):
    user = np.repeat(np.arange(number), each)
    fake = np.tile(flags("RF"), number * each // 2)
    return user, fake


def test_functions_find_what_tells_fakes_and_rank_it_first():
    user, fake = people()
    functions = training.learn(marked(fake), training.lessons(user, fake, 130), functions=3, seed=1)
    ranks = training.importances(functions, ["marker", "a", "b", "c"])
    assert next(iter(ranks.items())) == ("marker", 100.0)
    assert max(list(ranks.values())[1:]) < 1
    scored = [
        function(np.array([[1, 0.5, 0.5, 0.5], [0, 0.5, 0.5, 0.5]], np.float32)) for function in functions
    ]
    assert all(high > 0.95 and low < 0.05 for high, low in scored)


def test_the_same_seed_learns_the_same_and_another_something_else():
    user, fake = people()
    sample = np.random.default_rng(9).random((50, 4)).astype(np.float32)

    def learned(seed):
        known = training.lessons(user, fake, 130)
        return np.stack([one(sample) for one in training.learn(marked(user), known, 2, seed)])

    np.testing.assert_array_equal(learned(1), learned(1))
    assert (learned(1) != learned(2)).any()
    assert (learned(1)[0] != learned(1)[1]).any()


def test_unknown_relations_and_few_examples_do_no_harm():
    relations = np.array([[np.nan, 1], [np.nan, 0], [0.5, 1], [np.nan, 0]], np.float32)
    function = training.fit(relations, np.array([True, False, True, False]))
    assert ((function(relations) >= 0) & (function(relations) <= 1)).all()
    assert function(relations[:0]).size == 0


def test_relations_that_say_nothing_rank_nothing():
    function = training.fit(np.ones((8, 2), np.float32), np.arange(8) % 2 == 0)
    assert training.importances([function], ["a", "b"]) == {"a": 0.0, "b": 0.0}


def test_without_lightgbm_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtra, match="learn"):
        training.fit(np.ones((2, 1), np.float32), np.array([True, False]))

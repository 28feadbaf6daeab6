"""The kernels behind spelling and run-together words, against naive twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels import words as kernel
from querycloak.topics.classify.navigational import RunTogether
from querycloak.topics.classify.spelling import Spelling, as_bytes
from querycloak.topics.classify.vocabulary import Vocabulary

WORDS = [
    "weather",
    "recipes",
    "chicken",
    "hotmail",
    "photosynthesis",
    "bank",
    "of",
    "america",
    "credit",
    "card",
]


def vocabulary(words=WORDS, common=10.0):
    return Vocabulary(list(words), np.full(len(words), common))


def naive_distance(a, b):
    """Optimal string alignment, written as a recursion over prefixes."""
    table = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            choices = [table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a[i - 1] != b[j - 1])]
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                choices.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(choices)
    return table[len(a), len(b)]


short = st.text("abcd", min_size=1, max_size=8)


@given(short, short)
def test_distance_is_that_of_the_naive_twin(a, b):
    letters, bounds = as_bytes([a, b])
    rows = np.empty((40, 40), np.int64)
    found = kernel.distance(letters, bounds[0], bounds[1], letters, bounds[1], bounds[2], 2, rows)
    true = naive_distance(a, b)
    assert found == (true if true <= 2 else kernel.FAR)


@given(
    st.lists(st.text("abc", min_size=4, max_size=9), min_size=1, max_size=8, unique=True),
    st.text("abc", min_size=4, max_size=9),
)
def test_the_nearest_word_is_as_near_as_any(words, asked):
    number, errors = Spelling(vocabulary(words)).correct([asked])
    allowed = 2 if len(asked) >= 8 else 1
    best = min(naive_distance(asked, word) for word in words)
    if best > allowed:
        assert number[0] == -1
    else:
        assert errors[0] == naive_distance(asked, words[number[0]]) <= allowed


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("wether", "weather"),
        ("recpies", "recipes"),
        ("hotmial", "hotmail"),
        ("photosynthisys", "photosynthesis"),
    ],
)
def test_misspelt_words_are_corrected(typed, meant):
    known = vocabulary()
    number, _ = Spelling(known).correct([typed])
    assert known.words[number[0]] == meant


@pytest.mark.parametrize("typed", ["ban", "bnk", "zzzzzz", "1234", "", "x" * 100, "weit"])
def test_short_far_and_endless_words_stay_as_they_are(typed):
    assert Spelling(vocabulary()).correct([typed])[0].tolist() == [-1]


def test_of_equally_near_words_the_commoner_wins():
    known = Vocabulary(["barn", "bark"], np.array([5.0, 50.0]))
    assert known.words[Spelling(known).correct(["barz"])[0][0]] == "bark"


def test_run_together_words_fall_into_known_ones():
    known = vocabulary()
    parts, count = RunTogether(known).cut(["bankofamerica", "creditcard", "creditxcard", "bank"])
    spelt = [[known.words[i] for i in row[:n]] for row, n in zip(parts, count, strict=True)]
    assert spelt == [["bank", "of", "america"], ["credit", "card"], [], []]


@given(st.lists(st.sampled_from(["credit", "card", "bank", "america"]), min_size=1, max_size=4))
def test_what_was_put_together_comes_apart_again(words):
    known = vocabulary()
    parts, count = RunTogether(known).cut(["".join(words)])
    if 6 <= len("".join(words)) <= kernel.MOST_LETTERS:
        assert [known.words[i] for i in parts[0, : count[0]]] == words

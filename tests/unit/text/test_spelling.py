"""The kernels behind spelling and run-together words, against naive twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.text import _spelling as kernel
from querycloak.text.lexicon import Vocabulary
from querycloak.text.spelling import CompoundSplitter, SpellingCorrector, as_bytes

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


def naive_distance(a, b, half=2):
    """Optimal string alignment in halves of an error; `half=2` makes every error count in full."""
    table = {(0, 0): 0}
    for i in range(1, len(a) + 1):
        table[i, 0] = table[i - 1, 0] + 2
    for j in range(1, len(b) + 1):
        table[0, j] = table[0, j - 1] + 2
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            less = half if a[i - 2 : i] == 2 * a[i - 1] else 2
            more = half if b[j - 2 : j] == 2 * b[j - 1] else 2
            vowels = a[i - 1] in "aeiouy" and b[j - 1] in "aeiouy"
            change = 0 if a[i - 1] == b[j - 1] else half if vowels else 2
            choices = [table[i - 1, j] + less, table[i, j - 1] + more, table[i - 1, j - 1] + change]
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                choices.append(table[i - 2, j - 2] + 2)
            table[i, j] = min(choices)
    return table[len(a), len(b)]


short = st.text("abcde", min_size=1, max_size=8)


@given(short, short, st.sampled_from([2, 4]))
def test_distance_is_that_of_the_naive_twin(a, b, limit):
    letters, bounds = as_bytes([a, b])
    rows = np.empty((40, 40), np.int64)
    found = kernel.distance(letters, bounds[0], bounds[1], letters, bounds[1], bounds[2], limit, rows)
    true = naive_distance(a, b, half=1)
    assert found == (true if true <= limit else kernel.FAR)


words_of_few_letters = st.text("abce", min_size=4, max_size=9)


@given(st.lists(words_of_few_letters, min_size=1, max_size=8, unique=True), words_of_few_letters)
def test_what_is_found_is_near_and_what_is_near_is_found(words, asked):
    number, halves = SpellingCorrector(vocabulary(words)).correct([asked])
    allowed = 4 if len(asked) >= 8 else 2
    if number[0] >= 0:
        assert halves[0] == naive_distance(asked, words[number[0]], half=1) <= allowed
    else:
        assert min(naive_distance(asked, word) for word in words) > allowed


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
    number, _ = SpellingCorrector(known).correct([typed])
    assert known.words[number[0]] == meant


@pytest.mark.parametrize("typed", ["ban", "bnk", "zzzzzz", "1234", "", "x" * 100, "weit"])
def test_short_far_and_endless_words_stay_as_they_are(typed):
    assert SpellingCorrector(vocabulary()).correct([typed])[0].tolist() == [-1]


def test_of_equally_near_words_the_commoner_wins():
    known = Vocabulary(["barn", "bark"], np.array([5.0, 50.0]))
    assert known.words[SpellingCorrector(known).correct(["barz"])[0][0]] == "bark"


def test_run_together_words_fall_into_known_ones():
    known = vocabulary()
    parts, count = CompoundSplitter(known).split(["bankofamerica", "creditcard", "creditxcard", "bank"])
    spelt = [[known.words[i] for i in row[:n]] for row, n in zip(parts, count, strict=True)]
    assert spelt == [["bank", "of", "america"], ["credit", "card"], [], []]


@given(st.lists(st.sampled_from(["credit", "card", "bank", "america"]), min_size=1, max_size=4))
def test_what_was_put_together_comes_apart_again(words):
    known = vocabulary()
    parts, count = CompoundSplitter(known).split(["".join(words)])
    if 6 <= len("".join(words)) <= kernel.MOST_LETTERS:
        assert [known.words[i] for i in parts[0, : count[0]]] == words

"""The two controls, and the one door to the truth."""

from __future__ import annotations

import polars as pl
import pytest

from querycloak.attacks.base import AttackerView
from querycloak.attacks.controls import Copy, Guess
from querycloak.errors import NotApplicable


def view(users):
    return AttackerView(pl.DataFrame({"user": users}, schema={"user": pl.String}), {})


def test_guess_says_the_most_frequent_label_everywhere():
    assert Guess(Copy.Settings()).guess(view(["b", "a", "b", None])).guess.to_list() == ["b"] * 4


def test_guess_breaks_ties_by_name():
    assert Guess(Copy.Settings()).guess(view(["b", "a", "c", "a", "b"])).guess.to_list() == ["a"] * 5


def test_copy_repeats_what_it_was_told_and_nothing_else():
    attack = Copy(Copy.Settings())
    with pytest.raises(NotApplicable, match="no truth"):
        attack.guess(view(["a"]))
    attack.peek(pl.Series(["b"]))
    assert attack.guess(view(["a"])).guess.to_list() == ["b"]


def test_telling_one_copy_tells_no_other():
    Copy(Copy.Settings()).peek(pl.Series(["b"]))
    with pytest.raises(NotApplicable):
        Copy(Copy.Settings()).guess(view(["a"]))

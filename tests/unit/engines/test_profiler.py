from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.dictionary import Texts
from querycloak.engines.profiler import Profiler
from querycloak.log import BIT, NOTHING, Batch

LABELS, CATEGORIES = ["u", "v", "w", "x"], ["Arts", "Arts/Music", "Games/Chess", "Sports"]
records = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(CATEGORIES)), max_size=60)


def frame(rows):
    return pl.DataFrame(rows, schema={"user": pl.String, "category": pl.String}, orient="row")


def batch(rows, texts):
    columns = {
        "row": np.arange(len(rows)),
        "user": texts.user.intern([user for user, _ in rows]),
        "category": texts.category.intern([category for _, category in rows]),
    }
    return Batch.of(columns, texts)


def by_hand(rows):
    return {label: dict(Counter(c for u, c in rows if u == label)) for label in LABELS}


def read(profiler):
    return {label: profiler.profile(label) for label in LABELS}


@given(rows=records, at=st.integers(0, 60))
def test_profiles_are_the_counts_of_what_was_released_so_far(rows, at):
    profiler = Profiler()
    for part in (rows[:at], rows[at:]):
        profiler.update(frame(part))
    assert read(profiler) == by_hand(rows)
    assert profiler.records == len(rows)
    assert len(profiler) == len({label for label, _ in rows})


@given(rows=records, at=st.integers(0, 60))
def test_batches_with_the_same_or_other_texts_count_alike(rows, at):
    own, other = Texts(), Texts()
    other.category.intern(["Regional", *reversed(CATEGORIES)])
    profiler = Profiler(own)
    profiler.update(batch(rows[:at], own))
    profiler.update(batch(rows[at:], other))
    assert read(profiler) == by_hand(rows)


@given(rows=records, at=st.integers(0, 60))
def test_a_restart_changes_nothing(rows, at):
    straight, first, second = Profiler(), Profiler(), Profiler()
    straight.update(frame(rows))
    first.update(frame(rows[:at]))
    second.update(frame([("y", "Home")]))  # what was there before a restore must be gone
    second.restore(first.snapshot())
    second.update(frame(rows[at:]))
    saved, expected = second.snapshot(), straight.snapshot()
    assert saved.keys() == expected.keys()
    assert all(np.array_equal(saved[name], expected[name]) for name in saved)
    assert all(array.dtype != object for array in saved.values())
    assert second.profile("y") == {}


@given(rows=records, at=st.integers(0, 60))
def test_merged_parts_are_the_whole(rows, at):
    parts = Profiler(), Profiler()
    for part, own in zip(parts, (rows[:at], rows[at:]), strict=True):
        part.update(frame(own))
    parts[0].merge(parts[1])
    assert read(parts[0]) == by_hand(rows)


def test_the_most_frequent_category_comes_first():
    profiler = Profiler()
    profiler.update(frame([("u", "Sports"), ("u", "Arts"), ("u", "Sports"), ("u", "Games/Chess")]))
    assert list(profiler.profile("u").items()) == [("Sports", 2), ("Arts", 1), ("Games/Chess", 1)]
    assert profiler.frame().rows() == [("u", "Arts", 1), ("u", "Games/Chess", 1), ("u", "Sports", 2)]


@pytest.mark.parametrize("column", ["user", "category"])
def test_what_leaves_empty_is_not_counted(column):
    texts = Texts()
    whole = batch([("u", "Arts"), ("u", "Arts"), ("u", "Sports")], texts)
    profiler = Profiler(texts)
    profiler.update(whole.replace(blank=np.array([0, BIT[column], 0])))
    profiler.update(whole.replace(**{column: np.full(3, NOTHING)}))
    assert profiler.profile("u") == {"Arts": 1, "Sports": 1}


def test_asking_for_unknown_labels_keeps_nothing():
    texts = Texts()
    profiler = Profiler(texts)
    profiler.update(frame([("u", "Arts")]))
    for number in range(50):
        assert profiler.profile(f"nobody {number}") == {}
    assert texts.user.texts().to_list() == ["u"]


def test_a_release_without_categories_leaves_profiles_empty():
    profiler = Profiler()
    profiler.update(pl.DataFrame({"user": ["u"], "query": ["q"]}))
    assert len(profiler) == 0
    assert profiler.frame().is_empty()
    profiler.restore(profiler.snapshot())
    assert profiler.records == 0

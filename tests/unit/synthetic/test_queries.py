"""Words and chains: typing errors, second thoughts, invented names, keyed streams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.synthetic.queries import (
    EMPTY,
    HEAD,
    PREFIX,
    PRIVATE,
    SECOND,
    SITE,
    SLOTS,
    SUFFIX,
    TOPIC,
    edit,
    mistype,
)
from querycloak.synthetic.rng import mix, pick_weighted, pick_zipf, stream
from querycloak.synthetic.world import build, make_names

WORDS = {
    "Sports/Soccer": ["soccer", "Goal_Keeper", "goal keeper"],
    "Society": ["church"],
    "Regional": ["county"],
}


@given(text=st.text("abcde fgh", min_size=4, max_size=30), number=st.integers(1, 2**40))
def test_a_typing_error_is_small_and_always_the_same(text: str, number: int) -> None:
    wrong = mistype(text, number)
    assert wrong == mistype(text, number)
    assert abs(len(wrong) - len(text)) <= 1
    assert wrong[0] == text[0]


@pytest.mark.parametrize(
    ("number", "wrong"), [(4, "socer"), (5, "socccer"), (2, "scocer"), (3, "spccer"), (7, "sovcer")]
)
def test_each_kind_of_typing_error(number: int, wrong: str) -> None:
    assert mistype("soccer", number) == wrong


def test_short_texts_are_typed_right() -> None:
    assert mistype("abc", 6) == "abc"


def rows(*pieces: dict[int, int]) -> np.ndarray:
    slots = np.full((len(pieces), SLOTS), EMPTY, np.int64)
    for row, filled in zip(slots, pieces, strict=True):
        for slot, piece in filled.items():
            row[slot] = piece
    return slots


OFFERED = np.arange(100, 100 + SLOTS)


def changed(filled: dict[int, int], action: float, where: float, kind: int = TOPIC, slip: int = 0):
    slots, new_slip = edit(
        rows(filled), np.array([slip]), OFFERED[None], np.array([[action, where]]), np.array([kind])
    )
    return {slot: int(piece) for slot, piece in enumerate(slots[0]) if piece != EMPTY}, int(new_slip[0])


def test_a_word_is_added() -> None:
    assert changed({HEAD: 1}, action=0.1, where=0.0) == ({HEAD: 1, SECOND: 100 + SECOND}, 0)


def test_the_last_word_is_dropped_but_never_the_head() -> None:
    assert changed({HEAD: 1, SECOND: 2, SUFFIX: 3}, action=0.5, where=0.0) == ({HEAD: 1, SECOND: 2}, 0)
    assert changed({PREFIX: 9, HEAD: 1}, action=0.5, where=0.0) == ({HEAD: 1}, 0)
    assert changed({HEAD: 1}, action=0.5, where=0.0) == ({HEAD: 1}, 0)


def test_respelling_makes_or_mends_a_typing_error() -> None:
    assert changed({HEAD: 1}, action=0.7, where=0.5) == ({HEAD: 1}, 1 + 2**39)
    assert changed({HEAD: 1}, action=0.7, where=0.5, slip=77) == ({HEAD: 1}, 0)


def test_a_word_is_exchanged() -> None:
    assert changed({HEAD: 1}, action=0.9, where=0.0) == ({HEAD: 100 + HEAD}, 0)


def test_a_site_is_typed_in_another_way() -> None:
    assert changed({HEAD: 1}, action=0.1, where=0.0, kind=SITE) == ({HEAD: 100 + HEAD}, 0)


def test_a_private_text_stays_whole() -> None:
    for action in (0.1, 0.5, 0.7, 0.9):
        assert changed({}, action, where=0.25, kind=PRIVATE) == ({}, 0)


def test_names_avoid_what_is_taken() -> None:
    first = make_names("first", 20, ())
    assert len(set(first)) == 20
    assert not set(first[:5]) & set(make_names("first", 20, first[:5]))


def test_vocabulary_is_tidied() -> None:
    around = build(WORDS)
    assert around.texts("word") == ["county", "church", "soccer", "goal keeper"]
    assert around.topics.paths.to_list() == ["Regional", "Society", "Sports/Soccer"]
    assert around.topics.of_people == 1
    assert around.topics.of_places == 0


def test_streams_differ_by_every_argument() -> None:
    drawn = {
        tuple(stream(*key).integers(0, 2**60, 4).tolist())
        for key in [(0, 0, "a"), (1, 0, "a"), (0, 1, "a"), (0, 0, "b")]
    }
    assert len(drawn) == 4


@given(uniform=st.floats(0, 1, exclude_max=True), size=st.integers(1, 10_000))
def test_zipf_ranks_stay_below_the_size(uniform: float, size: int) -> None:
    assert 0 <= pick_zipf(np.array([uniform]), size)[0] < size
    assert 0 <= pick_zipf(np.array([uniform]), size, 4.0)[0] < size


def test_zipf_halves_from_first_to_second_rank() -> None:
    """100,000 seeded draws; the ratio 1.71 (for 1/(rank+1) in log steps) is met within 5 %."""
    ranks = pick_zipf(stream(1, 0, "test").random(100_000), 1_000)
    counts = np.bincount(ranks)
    assert counts[0] / counts[1] == pytest.approx(np.log(2) / np.log(1.5), rel=0.05)


def test_weights_are_respected() -> None:
    picked = pick_weighted(np.array([0.0, 0.24, 0.26, 0.999]), np.cumsum([1.0, 3.0]))
    assert picked.tolist() == [0, 0, 1, 1]


def test_mixing_spreads_and_repeats() -> None:
    numbers = mix(np.arange(1_000), 3)
    assert (numbers >= 0).all()
    assert np.unique(numbers).size == 1_000
    assert mix(np.arange(5), 3).tolist() == numbers[:5].tolist()

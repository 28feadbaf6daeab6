"""`link-pairs`: which pairs are drawn, what is seen of them, and what that is worth."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks import link_pairs
from querycloak.attacks.base import AttackerView
from querycloak.attacks.link_pairs import FEATURES, WEIGHTS, LinkPairs
from querycloak.attacks.searches import words_of
from querycloak.protector import Labels
from tests.unit.attacks.made import COHORT, SWAP, found, guess, made, table

SETS = st.lists(st.sets(st.integers(0, 6)), min_size=2, max_size=12)


@given(SETS)
def test_words_in_common_are_counted_as_by_sets(sets):
    begins = np.cumsum([0, *(len(some) for some in sets)])
    words = np.array([w for some in sets for w in sorted(some)], np.int32)
    rarity = np.arange(1.0, 8.0)
    first, second = (side.ravel() for side in np.meshgrid(range(len(sets)), range(len(sets))))
    alike, rarest = np.zeros(first.size), np.zeros(first.size)
    link_pairs.shared_words(first, second, begins, words, rarity, alike, rarest)
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        common, together = sets[a] & sets[b], sets[a] | sets[b]
        assert alike[i] == pytest.approx(len(common) / len(together) if common else 0)
        assert rarest[i] == max((rarity[w] for w in common), default=0)


def test_agreement_is_the_chance_of_one_author():
    who = np.array([[1, 2], [2, 3], [4, -1]], np.int32)
    belief = np.array([[0.5, 0.4], [0.5, 0.1], [1.0, 0.0]], np.float32)
    agreed = np.empty(2)
    link_pairs.agreement(np.array([0, 0]), np.array([1, 2]), who, belief, agreed)
    assert agreed == pytest.approx([0.4 * 0.5, 0])


def test_words_are_stems_each_once():
    words = words_of(pl.Series(["Red shoes, red SHOE", "", "boats", "boat shoes"]))
    of = [set(words.word[words.begins[s] : words.begins[s + 1]].tolist()) for s in range(4)]
    assert [len(some) for some in of] == [2, 0, 1, 2]
    assert len(of[0] & of[3]) == 1
    assert of[2] < of[3]


def test_pairs_are_different_rows_of_the_release_each_once():
    case = made("swap")
    answer = guess("link-pairs", case.release, case.certificate, pairs=4000)
    rows = case.release.height
    assert np.all(answer.first < rows)
    assert np.all(answer.second < rows)
    assert np.all(answer.first != answer.second)
    keys = np.minimum(answer.first, answer.second) * rows + np.maximum(answer.first, answer.second)
    assert np.unique(keys).size == keys.size > 2000


@pytest.mark.parametrize("method", ["swap", "cohort"])
def test_it_tells_pairs_apart_far_better_than_a_coin(method):
    finding = found("link-pairs", method)
    assert finding.low > 0.75
    assert finding.bound is None
    assert finding.details["area_under_curve"] > 0.85


def test_the_seed_chooses_the_pairs():
    case = made("cohort")
    one, again, other = (
        guess("link-pairs", case.release, case.certificate, pairs=400, seed=seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(one.first, again.first)
    assert np.array_equal(one.score, again.score)
    assert not np.array_equal(one.first, other.first)


def test_missing_columns_are_no_evidence():
    frame = table(["a", "b", "c", None], ["red shoes", "red boat", None, "x"])
    view = AttackerView(frame, SWAP)
    _, _, seen = LinkPairs(LinkPairs.Settings(pairs=400)).look(view)
    columns = dict(zip(FEATURES, seen.T, strict=True))
    assert not columns["closeness_in_time"].any()
    assert columns["words_in_common"].max() == pytest.approx(1 / 3)


def test_every_feature_has_a_weight_for_both_kinds_of_release():
    assert {name: len(weights) for name, weights in WEIGHTS.items()} == {
        Labels.OTHERS: len(FEATURES),
        Labels.GROUP: len(FEATURES),
    }


def test_one_row_makes_no_pair():
    frame = table(["a"], ["x"])
    for certificate in (SWAP, COHORT):
        assert guess("link-pairs", frame, certificate).first.size == 0
        assert guess("link-pairs", frame.clear(), certificate).first.size == 0

"""Every measure has a unit, a kind and a headline; words are split in one way."""

from __future__ import annotations

import unicodedata
from functools import reduce
from operator import getitem

import polars as pl
import pytest

import querycloak as qc
from querycloak.errors import NotApplicable
from querycloak.measures import retention
from querycloak.measures.base import ALL_USES, Kind, LogPair, Measure, Unit, run, words_of
from querycloak.measures.meaning import Readability
from querycloak.measures.uses import TermsKept
from querycloak.registry import MEASURES
from tests.reference.plain_measures import readability, terms, terms_kept
from tests.support.logs import made_up


@pytest.fixture(scope="module")
def pair():
    log = made_up(30, 3, categories=True)
    release = qc.protect(log, "swap", k=2, seed=1)
    return LogPair(log.frame, release.log.frame, release.truth)


@pytest.mark.parametrize("name", MEASURES.names())
def test_every_measure_declares_what_its_headline_is(name, pair):
    measure: Measure = MEASURES.get(name)()
    assert isinstance(measure.unit, Unit)
    assert isinstance(measure.kind, Kind)
    try:
        found = measure(pair)
    except NotApplicable:
        return
    if name != "top_preserved":  # shares of several kinds, none of which stands for the others
        figure = reduce(getitem, measure.headline.split("."), found) if measure.headline else found
        assert figure >= 0
    if measure.unit is Unit.SHARE and not isinstance(found, dict):
        assert found <= 1


@pytest.mark.parametrize("use", ALL_USES.values(), ids=list(ALL_USES))
def test_a_use_has_the_kind_of_its_measure(use):
    assert MEASURES.get(use.measure.partition(".")[0]).kind is use.kind


def test_a_measure_that_does_not_apply_has_the_reason(pair):
    plain = LogPair(pair.original.drop("category"), pair.released)
    assert run(plain, ["tree_emd"]) == {"tree_emd": {"not_applicable": "the original has no category"}}
    assert run(plain, ["release_rate"], table=True)["release_rate"]["not_applicable"]
    assert set(run(pair, ["release_rate", "terms_kept"])) == {"release_rate", "terms_kept"}


@pytest.mark.parametrize("accents", ["NFC", "NFD"])
def test_words_are_split_in_one_way(accents):
    asked = [unicodedata.normalize(accents, query) for query in ("Cafés de Paris", "e-mail", "cafés")]
    shown = [unicodedata.normalize(accents, query) for query in ("cafés", "mail")]
    words = [word for query in asked for word in terms(query)]
    assert words_of(pl.Series(asked)).to_list() == words
    pair = LogPair(pl.DataFrame({"query": asked}), pl.DataFrame({"query": shown}))
    assert TermsKept()(pair) == terms_kept(asked, shown) == 2 / 6
    assert Readability()(pair) == readability(asked, shown)
    assert retention([asked], [shown])["log_size"] == pytest.approx(100 * 2 / 6)

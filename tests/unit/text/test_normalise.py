"""One definition of a word and one normal form; audits and methods agree on both."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import querycloak
from querycloak.attacks.searches import in_terms
from querycloak.clients.obfuscation import threads
from querycloak.measures.base import words_of
from querycloak.methods.km import audit as km_audit
from querycloak.methods.rules import audit as rules_audit
from querycloak.methods.short_sessions import audit as sessions_audit
from querycloak.synthetic.marketing import count_terms
from querycloak.text.normalise import WORD, normalise, normalise_text, number, tokens_of, words
from querycloak.text.taxonomy import load

SCRIPTS = "हिन्दी फिल्म o'neil's"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def split(text):
    return words(pl.Series([text], dtype=pl.String)).to_list()[0]


def test_a_word_keeps_the_marks_of_its_script():
    assert split(SCRIPTS) == ["हिन्दी", "फिल्म", "o", "neil", "s"]


def test_every_reader_of_words_has_the_same_ones():
    frame = pl.DataFrame({"user": ["u"], "query": [SCRIPTS]})
    expected = sorted(split(SCRIPTS))
    assert sorted(words_of(frame["query"])) == expected
    assert sorted(threads._words(frame["query"])["word"]) == expected
    assert threads._words(pl.Series(["½ cup"]))["word"].to_list() == split("½ cup")
    assert sorted(count_terms(frame)["term"]) == expected
    assert sorted(in_terms(frame.rename({"query": "thing"}))["thing"]) == expected


def test_the_audits_of_terms_have_the_same_definition():
    """An audit may not import `text`; so the patterns are compared here."""
    assert km_audit._TERM == sessions_audit._TERM == WORD


@given(st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=30))
def test_the_audit_of_rules_has_the_same_words_but_for_apostrophes(text):
    joined = text.replace("'", "").replace("’", "").replace("`", "")
    assert rules_audit._words(text) == split(joined)


def test_a_letter_that_only_the_method_knows_does_not_stop_a_release():
    """U+13460 is of Unicode 16: polars calls it a letter, and Python 3.11 does not know it."""
    log = pl.DataFrame({"user": ["u", "v"], "query": ["john \U00013460 smith", "weather"]})
    assert len(querycloak.protect(log, "rules").log) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Café—OLÉ's  ", "cafe oles"),
        ("ﬁne", "fine"),
        ("C++ & .NET ", "cplusplus dotnet"),
        ("Straße ΟΔΟΣ", "strasse οδοσ"),
        ("हिन्दी फिल्म", "हिन्दी फिल्म"),
        ("が か", "が か"),
        ("mary™ smith", "mary smith"),
        ("½ cup", "1 2 cup"),
        ("\u0301abc", "abc"),
        ("", ""),
    ],
)
def test_the_normal_form(text, expected):
    assert normalise_text(text) == expected


def test_null_becomes_empty_and_long_texts_are_cut():
    assert normalise(pl.Series([None, "a" * 500])).to_list() == ["", "a" * 400]


@given(texts)
def test_the_normal_form_consists_of_words_and_is_stable(text):
    normal = normalise_text(text)
    assert " ".join(split(normal)) == normal
    assert normalise_text(normal) == normal


def test_the_shipped_phrases_are_in_normal_form():
    listed = pl.Series(load().lexicon.texts)
    assert (normalise(listed) == listed).all()


def test_words_are_numbered_in_the_order_of_first_occurrence():
    assert number(pl.Series(["b", "a", "b"]))[0].tolist() == [0, 1, 0]
    tokens = tokens_of(pl.Series(["b a", "", "a"]))
    assert tokens.words == ["b", "a", ""]
    assert (tokens.codes.tolist(), tokens.bounds.tolist()) == ([0, 1, 2, 1], [0, 2, 3, 4])

"""The one reading of a query."""

from __future__ import annotations

import polars as pl
import pytest

from querycloak.errors import MissingExtra
from querycloak.text import TextReader, TextSpec, noun_phrases
from querycloak.text.classify import default_classifier
from querycloak.text.senses import ConceptMapper, concept_lexicon

QUERIES = pl.Series(["golf clubs in boston", "mary smith", "jo@made-up.example", "", None])
TABLE = "path,terms\nSports/Golf,golf clubs;tee\nHome/Kitchen/Baking,C++ cake;Straße\n"


def test_concepts_and_categories_are_those_of_the_parts():
    readings = TextReader().read(QUERIES)
    mapped = ConceptMapper(concept_lexicon()).read(QUERIES)
    assert readings.concepts.phrases == mapped.phrases
    assert readings.concepts.start.tolist() == mapped.start.tolist()
    assert readings.category.tolist() == default_classifier().classify(QUERIES).category.tolist()


def test_entities_are_those_of_the_spec_in_its_order():
    reader = TextReader(TextSpec(entities=("email", "listed", "name"), listed=frozenset({"golf clubs"})))
    found = reader.read(QUERIES).entities.tolist()
    assert found == [[False, True, False], [False, False, True], [True, False, False], *[[False] * 3] * 2]


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.csv"
    file.write_text(TABLE, "utf-8")
    return file


def test_terms_of_an_own_taxonomy_are_found_in_queries_of_the_same_spelling(own):
    reader = TextReader(TextSpec(taxonomy=str(own)))
    paths = reader.lexicon.tree.paths
    queries = pl.Series(["c++ cake", "STRASSE", "straße", "Tee"])
    found = [paths[node] for node in reader.read(queries).category]
    assert found == ["Home/Kitchen/Baking"] * 3 + ["Sports/Golf"]
    assert [reader.lexicon.category[c] for c in reader.read(queries).concepts.concept] == found


def test_a_reader_without_its_parser_is_refused_before_it_reads(monkeypatch):
    monkeypatch.setattr(noun_phrases, "MODEL", "no_such_model")
    with pytest.raises(MissingExtra):
        TextReader(TextSpec(phrases="linguistic")).check_ready()
    TextReader().check_ready()

"""Whole logs: columns, order, empty cells, distinct searches."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from querycloak.errors import DataError, ParameterError
from querycloak.text.classifier import Classification
from querycloak.text.classify import classify_log
from querycloak.text.taxonomy import load

from .small_taxonomy import lexicon_of, small_classifier, small_taxonomy

ADDRESS = "http://www.weather.example/"


def log():
    return pl.DataFrame(
        {
            "user": ["a", "b", "a", "c", "d", "e"],
            "query": ["golf clubs", "zorblax", "golf clubs", None, "zorblax", "Banana Bread"],
            "url": [ADDRESS, ADDRESS, None, None, None, ""],
            "category": ["old"] * 6,
        }
    )


class Counting:
    """Hands on to a classifier and notes what it was asked."""

    reads_urls = True

    def __init__(self):
        self.taxonomy = small_taxonomy()
        self.asked = []

    def classify(self, queries):
        self.asked.append(queries.to_list())
        return small_classifier().classify(queries)

    def classify_urls(self, urls):
        self.asked.append(urls.to_list())
        return small_classifier().classify_urls(urls)


def test_a_log_gets_categories_and_keeps_its_order():
    done = classify_log(log(), small_classifier())
    assert done.columns == ["user", "query", "url", "category", "confidence"]
    assert done["user"].to_list() == log()["user"].to_list()
    assert done["query"].to_list() == log()["query"].to_list()
    paths = done["category"].to_list()
    assert [paths[i] for i in (0, 1, 2, 3, 5)] == [
        "Sports/Golf",
        "News/Weather",
        "Sports/Golf",
        None,
        "Home/Cooking",
    ]
    assert paths[4] not in (None, "News/Weather")
    assert done["confidence"].to_list()[3] == 0.0
    assert done["confidence"].null_count() == 0


def test_each_distinct_query_is_asked_once_and_addresses_only_where_needed():
    counting = Counting()
    classify_log(log(), counting)
    assert counting.asked == [["golf clubs", "zorblax", "Banana Bread"], [ADDRESS]]


def test_a_log_and_single_searches_agree():
    done = classify_log(log().drop_nulls("query"), small_classifier())
    for row in done.iter_rows(named=True):
        one = classify_log(pl.DataFrame({name: [row[name]] for name in ("query", "url")}), small_classifier())
        assert one["category"][0] == row["category"]
        assert one["confidence"][0] == row["confidence"]


def test_other_columns_and_an_absent_url_are_no_hindrance():
    frame = pl.DataFrame({"query": ["golf", 7 * "x", "golf"], "rank": [1, 2, 3]}, strict=False)
    done = classify_log(frame, small_classifier())
    assert done.columns == ["query", "rank", "category", "confidence"]
    assert done["rank"].to_list() == [1, 2, 3]


def test_an_empty_log_stays_empty():
    done = classify_log(log().clear(), small_classifier())
    assert done.shape == (0, 5)
    assert done.schema["category"] == pl.String
    assert done.schema["confidence"] == pl.Float64


def test_a_log_without_queries_is_refused():
    with pytest.raises(DataError, match="no column `query`"):
        classify_log(pl.DataFrame({"user": ["a"]}))


def test_progress_is_told():
    told = []
    classify_log(log(), small_classifier(), progress=lambda done, of: told.append((done, of)))
    assert told == [(3, 3)]


def test_paths_are_cut_at_thirteen_levels():
    from querycloak.text.taxonomy import build

    deep = build(range(-1, 15), ["", *(f"n{i}" for i in range(15))], lexicon_of([]))

    class Deepest:
        taxonomy, reads_urls = deep, False

        def classify(self, queries):
            size = len(queries)
            return Classification(np.full(size, 15), np.ones(size), np.ones(size, np.int8))

    done = classify_log(pl.DataFrame({"query": ["x"]}), Deepest())
    assert done["category"][0].count("/") == 12


def test_a_classifier_and_another_taxonomy_are_refused():
    """The nodes of one tree must not be written as the paths of another."""
    with pytest.raises(ParameterError, match="another taxonomy"):
        classify_log(log(), small_classifier(), taxonomy=load())

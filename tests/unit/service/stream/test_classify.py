"""Categories for records without one: every query gets its answer, whatever the cache drops."""

from __future__ import annotations

import polars as pl
import pytest

from querycloak import text
from querycloak.service.stream import classify
from querycloak.service.stream.classify import QueryClassifier

KNOWN = ["weather", "rain forecast", "football scores"]


def records(queries: list[str], url: str | None = None) -> pl.DataFrame:
    columns = ("query", "url", "category")
    rows = [(query, url, None) for query in queries]
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def answers(frame: pl.DataFrame) -> list[str | None]:
    return frame["category"].to_list()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classify, "CACHED", 10)


def test_what_a_batch_needs_is_not_forgotten_while_it_is_filled() -> None:
    one, fresh = QueryClassifier(), answers(QueryClassifier().fill(records(KNOWN)))
    assert None not in fresh, "or else this test could not fail"
    one.fill(records(KNOWN))
    one.fill(records([f"term{number}" for number in range(7)]))
    assert answers(one.fill(records([*KNOWN, "one more", *KNOWN])))[:3] == fresh
    assert answers(one.fill(records(KNOWN))) == fresh


def test_a_batch_with_more_queries_than_are_remembered_is_filled() -> None:
    many = [*KNOWN, *(f"term{number}" for number in range(50)), *KNOWN]
    one = QueryClassifier()
    found = answers(one.fill(records(many)))
    assert found[:3] == found[-3:] == answers(QueryClassifier().fill(records(KNOWN)))
    assert len(one._cache) <= 10


def test_memory_stays_within_its_bound() -> None:
    one = QueryClassifier()
    for batch in range(30):
        one.fill(records([f"term{batch}x{number}" for number in range(batch % 5)]))
        assert len(one._cache) <= 10


def test_an_address_counts_as_in_files() -> None:
    query, url = "xqzzy", "http://golfclubs.com"
    frame = pl.DataFrame({"row": [0], "user": "u", "query": query, "url": url})
    (expected,) = text.classify_log(frame)["category"].to_list()
    one = QueryClassifier()
    assert answers(one.fill(records([query]))) != [expected], "or else this test could not fail"
    assert answers(one.fill(records([query], url))) == [expected]
    assert answers(one.fill(records([query], url))) == [expected]  # from the cache

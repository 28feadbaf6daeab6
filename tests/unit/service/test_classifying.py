"""Categories for records that came without: every query gets its answer, whatever is forgotten meanwhile."""

from __future__ import annotations

import polars as pl
import pytest

pytestmark = pytest.mark.service
pytest.importorskip("msgspec")

from querycloak.service import classifying  # noqa: E402
from querycloak.service.classifying import Classifying  # noqa: E402

KNOWN = ["weather", "rain forecast", "football scores"]


def records(queries: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"query": queries, "category": [None] * len(queries)},
        schema={"query": pl.String, "category": pl.String},
    )


def answers(frame: pl.DataFrame) -> list[str | None]:
    return frame["category"].to_list()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifying, "REMEMBERED", 10)


def test_what_a_batch_needs_is_not_forgotten_while_it_is_filled() -> None:
    one, fresh = Classifying(), answers(Classifying().fill(records(KNOWN)))
    assert None not in fresh, "or else this test could not fail"
    one.fill(records(KNOWN))
    one.fill(records([f"term{number}" for number in range(7)]))
    assert answers(one.fill(records([*KNOWN, "one more", *KNOWN])))[:3] == fresh
    assert answers(one.fill(records(KNOWN))) == fresh


def test_a_batch_with_more_queries_than_are_remembered_is_filled() -> None:
    many = [*KNOWN, *(f"term{number}" for number in range(50)), *KNOWN]
    one = Classifying()
    found = answers(one.fill(records(many)))
    assert found[:3] == found[-3:] == answers(Classifying().fill(records(KNOWN)))
    assert len(one._known) <= 10


def test_memory_stays_within_its_bound() -> None:
    one = Classifying()
    for batch in range(30):
        one.fill(records([f"term{batch}x{number}" for number in range(batch % 5)]))
        assert len(one._known) <= 10

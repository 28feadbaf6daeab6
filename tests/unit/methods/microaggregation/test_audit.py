"""The audits of microaggregation find what sets and loops find, on all columns and from the release alone."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.audits.evidence import Evidence
from querycloak.methods.microaggregation.audit import audits, histories
from tests.reference import naive_groups

ROWS = st.lists(
    st.tuples(st.sampled_from("uvwxyz"), st.sampled_from("ab"), st.sampled_from([None, "A/x", "A/y", "B"])),
    max_size=16,
)


def evidence(rows, truth=None):
    schema = {"user": pl.String, "query": pl.String, "category": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_row_index("released_row")
    original = pl.LazyFrame(schema={"row": pl.Int64, "user": pl.String, "query": pl.String})
    return Evidence(frame.cast({"released_row": pl.Int64}).lazy(), original, truth)


def rows_of(labels, rows):
    return [place for place, row in enumerate(rows) if row[0] in labels]


@given(rows=ROWS, k=st.integers(2, 4))
def test_exactly_the_histories_of_fewer_than_k_labels_are_found(rows, k):
    found = audits(k)[0](evidence(rows))
    wrong = rows_of(naive_groups.shared(rows, k), rows)
    assert (found.verdict == "broken") == bool(wrong)
    assert all(str(place) in found.detail for place in wrong[:5])


@given(rows=ROWS, order=st.randoms(use_true_random=False))
def test_the_order_of_rows_makes_no_history(rows, order):
    mixed = list(rows)
    order.shuffle(mixed)
    for k in (2, 3):
        assert audits(k)[0](evidence(rows)).verdict == audits(k)[0](evidence(mixed)).verdict


def test_how_often_a_row_comes_is_part_of_a_history():
    found = histories(evidence([("u", "a", "A"), ("v", "a", "A"), ("v", "a", "A"), ("w", "a", "A")]))
    number = dict(found.rows())
    assert number["u"] == number["w"] != number["v"]


@given(rows=ROWS.filter(bool), least=st.integers(2, 3))
def test_topics_are_counted_by_the_first_name(rows, least):
    topics = {}
    for label, _, category in rows:
        topics.setdefault(label, set()).add(category and category.partition("/")[0])
    wrong = {label for label, known in topics.items() if len(known - {None}) < least}
    assert (audits(1, least)[2](evidence(rows)).verdict == "broken") == bool(wrong)


@given(rows=ROWS.filter(bool), most=st.sampled_from([Fraction(0), Fraction(1, 5), Fraction(1, 2)]))
def test_closeness_is_half_of_all_differences(rows, most):
    by_topic = [(label, category and category.partition("/")[0]) for label, _, category in rows]
    wrong = naive_groups.far(by_topic, most)
    assert (audits(1, 1, float(most))[2](evidence(rows)).verdict == "broken") == bool(wrong)


def test_rows_that_the_truth_does_not_know_are_faults():
    rows = [("u", "a", "A"), ("v", "a", "A")]
    truth = {"released_row": [0], "original_row": [None], "original_user": ["x"]}
    for known in (1, 0):
        part = pl.LazyFrame(truth, schema_overrides={"original_row": pl.Int64}).head(known)
        assert audits(1)[1](evidence(rows, truth=part)).verdict == "broken"


def test_people_behind_labels_are_counted_with_the_truth():
    rows = [("u", "a", "A"), ("v", "a", "A")]

    def truth(*people):
        return pl.LazyFrame({"released_row": [0, 1], "original_row": [None, None], "original_user": people})

    check = audits(2)[1]
    assert check(evidence(rows)).verdict == "not checkable"
    assert check(evidence(rows, truth("ann", "bob"))).verdict == "kept"
    assert check(evidence(rows, truth("ann", "ann"))).verdict == "broken"


@pytest.mark.parametrize(("settings", "number"), [((2, 2), 2), ((2, 1, 0.5), 2)])
def test_without_categories_topics_cannot_be_checked(settings, number):
    frame = pl.LazyFrame({"released_row": [0], "user": ["u"], "query": ["a"]})
    assert audits(*settings)[number](Evidence(frame)).verdict == "not checkable"


def test_a_fault_names_rows_and_no_cells():
    found = audits(2)[0](evidence([("zanzibar", "walrus", "A")]))
    assert found.verdict == "broken"
    assert "are of histories that fewer than 2 labels have" in found.detail
    assert not {"zanzibar", "walrus"} & set(found.detail.split())

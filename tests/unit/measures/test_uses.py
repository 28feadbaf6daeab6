"""What a log can still be used for: worked by hand, and against a naive count."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import NotApplicable
from querycloak.measures.base import LogPair
from querycloak.measures.uses import ClicksKept, SessionsKept, TermsKept, UniqueTexts, overlap
from tests.reference import plain_measures as plain

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def log(*rows):
    """Make a log of user, query, minutes after noon, clicked page."""
    columns = {"user": pl.String, "query": pl.String, "time": pl.Datetime("us", "UTC"), "url": pl.String}
    values = [
        (user, query, None if at is None else NOON + timedelta(minutes=at), url)
        for user, query, at, url in rows
    ]
    return pl.DataFrame(values, schema=columns, orient="row").with_row_index("row")


def truth(*origins):
    return pl.DataFrame(
        {"released_row": range(len(origins)), "original_row": origins},
        schema={"released_row": pl.Int64, "original_row": pl.Int64},
    )


BEFORE = log(
    ("a", "red shoes", 0, "x.org"),
    ("a", "red boots", 10, None),
    ("a", "red boots", 10, "y.org"),  # a second click of the same search
    ("a", "hats", 90, None),
    ("b", "red shoes", 0, "x.org"),
    ("b", "gloves", 30, None),
)


def test_words_count_as_often_as_they_were_there():
    after = log(("a", "red red shoes", 0, None), ("b", "scarf", 0, None))
    assert TermsKept()(LogPair(BEFORE, after)) == pytest.approx(3 / 10)
    assert TermsKept()(LogPair(BEFORE, BEFORE)) == 1


def test_clicks_count_with_their_query():
    after = log(("c", "red shoes", 0, "x.org"), ("c", "red boots", 0, "x.org"))
    assert ClicksKept()(LogPair(BEFORE, after)) == pytest.approx(1 / 3)
    assert ClicksKept()(LogPair(BEFORE, after.with_columns(url=pl.lit(None, pl.String)))) == 0
    with pytest.raises(NotApplicable, match="original has no url"):
        ClicksKept()(LogPair(BEFORE.drop("url"), after))


def test_a_step_is_kept_if_both_searches_are_there_as_they_were():
    # The steps: a's shoes to boots, b's shoes to gloves. Ninety minutes are too long for the third.
    whole = LogPair(BEFORE, BEFORE, truth(0, 1, 2, 3, 4, 5))
    assert SessionsKept()(whole) == 1
    torn = BEFORE.with_columns(user=pl.Series(["p", "q", "q", "p", "r", "r"]))
    assert SessionsKept()(LogPair(BEFORE, torn, truth(0, 1, 2, 3, 4, 5))) == 0.5
    other = BEFORE.with_columns(
        query=pl.Series(["red shoes", "boots", "boots", "hats", "red shoes", "gloves"])
    )
    assert SessionsKept()(LogPair(BEFORE, other, truth(0, 1, 2, 3, 4, 5))) == 0.5
    late = BEFORE.with_columns(
        time=pl.Series([NOON + timedelta(hours=n) for n in range(6)], dtype=pl.Datetime("us", "UTC"))
    )
    assert SessionsKept()(LogPair(BEFORE, late, truth(0, 1, 2, 3, 4, 5))) == 0
    timeless = BEFORE.with_columns(time=pl.lit(None, pl.Datetime("us", "UTC")))
    assert SessionsKept()(LogPair(BEFORE, timeless, truth(0, 1, 2, 3, 4, 5))) == 0
    assert SessionsKept()(LogPair(BEFORE, BEFORE, truth(*[None] * 6))) == 0, "made-up rows keep no session"


def test_sessions_need_the_truth_and_times():
    with pytest.raises(NotApplicable, match="truth"):
        SessionsKept()(LogPair(BEFORE, BEFORE))
    with pytest.raises(NotApplicable, match="no time"):
        SessionsKept()(LogPair(BEFORE.drop("time"), BEFORE, truth(0)))
    with pytest.raises(NotApplicable, match="nobody"):
        SessionsKept()(LogPair(BEFORE.head(1), BEFORE, truth(0)))


def test_texts_of_one_person_are_counted_by_the_original():
    after = log(("p", "red shoes", 0, None), ("q", "hats", 0, None), ("r", "nobody asked", 0, None))
    assert UniqueTexts()(LogPair(BEFORE, after)) == pytest.approx(1 / 3)


@given(st.lists(st.sampled_from("abc"), min_size=1), st.lists(st.sampled_from("abcd")))
def test_the_overlap_is_that_of_two_bags(before, after):
    both = (Counter(before) & Counter(after)).total()
    made = (pl.DataFrame({"x": side}, schema={"x": pl.String}) for side in (before, after))
    assert overlap(*made) == pytest.approx(both / len(before))


SEARCH = st.tuples(
    st.sampled_from("ab"),
    st.sampled_from(["red shoes", "hats", "red"]),
    st.integers(0, 90),
    st.sampled_from(["x", "y", None]),
)
FATE = st.tuples(st.sampled_from("pq"), st.booleans(), st.integers(0, 60))


@given(st.lists(SEARCH, min_size=1, max_size=12, unique_by=lambda one: (one[0], one[2])), st.data())
def test_on_logs_they_say_what_the_pure_functions_say(rows, data):
    rows.sort(key=lambda one: one[2])
    fates = data.draw(st.lists(st.none() | FATE, min_size=len(rows), max_size=len(rows)))
    there = [(place, fate) for place, fate in enumerate(fates) if fate is not None]
    before = log(*rows)
    after = log(
        *(
            (label, rows[place][1] if same else "gloves", at, rows[place][3])
            for place, (label, same, at) in there
        )
    )
    pair = LogPair(before, after, truth(*(place for place, _ in there)))
    asked, shown = (frame["query"].to_list() for frame in (before, after))
    clicks = [frame.select("query", "url").drop_nulls().rows() for frame in (before, after)]
    fate = [(one[0], one[2]) if one is not None and one[1] else None for one in fates]
    expected = {
        TermsKept: plain.terms_kept(asked, shown) if shown else None,
        ClicksKept: plain.clicks_kept(*clicks) if clicks[0] else None,
        SessionsKept: plain.sessions_kept([(row[0], row[2]) for row in rows], fate),
        UniqueTexts: plain.unique_texts([row[:2] for row in rows], shown) if shown else None,
    }
    for kind, value in expected.items():
        if value is None or value != value:
            continue
        assert kind()(pair) == pytest.approx(value)

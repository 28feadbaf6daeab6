"""Looking at one's own history: counts that are right, and no query unless asked for."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.engines import own_history as own
from querycloak.errors import DataError, MissingExtra
from querycloak.log import Log
from querycloak.report import render
from querycloak.report.own_history import page
from querycloak.text.taxonomy import load
from tests.support.logs import made_up
from tests.unit.report.test_render import Reader

ASKED = (
    ["diabetes symptoms"] * 4
    + [
        "church near me",
        "call 555 123 4567",
        "me@example.org",
        "john smith",
        "12 oak street",
        "soccer scores",
    ]
    + ["zorblax quuxfrob"] * 3
)


@pytest.fixture(scope="module")
def crowd():
    return made_up(users=40, seed=1).frame


def history(asked=ASKED, times=True):
    start = datetime(2024, 3, 4, 9, tzinfo=UTC)  # a Monday
    stamps = [start + timedelta(hours=place % 8, days=place // 8) for place in range(len(asked))]
    frame = pl.DataFrame(
        {"query": asked, "time": stamps if times else [None] * len(asked)},
        schema={"query": pl.String, "time": pl.Datetime("us", "UTC")},
    )
    return Log(frame)


def test_counts_are_right(crowd):
    found = own.look(history(), crowd)
    assert (found["searches"], found["distinct"]) == (13, 8)
    assert found["personal"] == {
        "an e-mail address": 1,
        "a card number": 0,
        "a telephone number": 1,
        "a digit": 2,
        "a person's name": 1,
        "a place": 0,
        "a street address": 1,
    }
    assert found["topics"]["sensitive"]["health"] >= 4
    assert found["habits"] | {"bits": 0} == {"queries": 2, "searches": 7, "most": 4, "names": 0, "bits": 0}
    assert found["time"]["by_hour"][9:17] == [2, 2, 2, 2, 2, 1, 1, 1]
    assert found["time"]["by_weekday"]["Monday"] == 8
    assert found["time"]["office_hours_share"] == 1.0
    assert (found["time"]["first_day"], found["time"]["last_day"]) == ("2024-03-04", "2024-03-05")
    assert found["singled_out"]["made_up_people"] == 40
    left = list(found["singled_out"]["left_if_known"].values())
    assert left == sorted(left, reverse=True)


@pytest.mark.learn
def test_rare_words_carry_more_bits(crowd):
    common = own.look(history(["the news"] * 3), crowd)["habits"]["bits"]
    rare = own.look(history(["zorblax quuxfrob"] * 3), crowd)["habits"]["bits"]
    assert common["most"] < 20
    assert rare["above_33"] == 1
    assert own.look(history(["once"]), crowd)["habits"]["bits"]["most"] == 0


def test_without_the_list_of_words_the_bits_are_left_out(crowd, monkeypatch):
    from querycloak.attacks.link_learned import words

    def absent(_):
        raise MissingExtra("learn", "the frequency of a word")

    monkeypatch.setattr(words, "rarity", absent)
    found = own.look(history(), crowd)
    assert found["habits"]["bits"] is None
    assert "needs the extra learn" in render.terminal(page(found))


def test_no_query_is_given_unless_asked_for(crowd):
    hidden = own.look(history(), crowd)
    told = json.dumps(hidden) + render.terminal(page(hidden)) + render.page(page(hidden))
    assert not [query for query in set(ASKED) if query in told]
    given = own.look(history(), crowd, show=True)
    text = render.terminal(page(given))
    shown = {"diabetes symptoms", "zorblax quuxfrob", "me@example.org", "john smith", "12 oak street"}
    assert all(query in text for query in shown)


def test_a_shown_query_is_text_on_the_page(crowd):
    nasty = "<img src=x onerror=alert(1)> 1"
    found = Reader(render.page(page(own.look(history([nasty] * 3), crowd, show=True))))
    assert "img" not in [name for name, _ in found.tags]
    assert any(nasty.partition(" ")[2][:10] in text for text in found.data)


def test_a_history_without_times_says_so(crowd):
    found = own.look(history(times=False), crowd)
    assert found["time"] is None
    assert "The file has no times" in render.terminal(page(found))


def test_an_empty_history_is_an_error_with_a_reason(crowd):
    with pytest.raises(DataError, match="no search"):
        own.look(history([]), crowd)
    empty = history([])
    empty.skipped.add("not a search", [0, 1])
    with pytest.raises(DataError, match="2 entries were left out: not a search"):
        own.look(empty, crowd)


def test_one_odd_search_concludes_little(crowd):
    text = render.terminal(page(own.look(history(["xqzw"], times=False), crowd)))
    assert "there is not enough here" in text or "You care about" in text
    assert "No query comes back" in text


few = st.frozensets(st.sampled_from("abcdef"))


@given(mine=few, crowd=st.lists(few, max_size=5), known=st.integers(1, 4))
def test_who_is_left_is_the_mean_over_all_choices(mine, crowd, known):
    choices = list(combinations(sorted(mine), known))
    found = own.left_by_topics(mine, crowd, known)
    if not choices:
        assert found is None
    else:
        left = [sum(set(choice) <= other for other in crowd) for choice in choices]
        assert found == pytest.approx(sum(left) / len(left))


def test_sensitive_matters_are_counted_by_topic():
    paths = ["Health", "Health/Sexual Health/x", "Healthy", "Society/Religion/a/b", "Sports", "Adult"]
    assert own.sensitive(paths) == {"health": 2, "sex life": 2, "religion": 1}


def test_sensitive_topics_are_in_the_taxonomy():
    known = {own.cut(path, level) for path in load().paths for level in (1, 2)}
    assert {root for roots in own.SENSITIVE.values() for root in roots} <= known


def test_queries_that_come_back_are_found_whatever_their_case():
    asked = ["My  Page", "my page", "MY PAGE", "other", "other"]
    assert own.repeated(asked) == {"my page": 3}


def test_the_quiet_hours_may_go_over_midnight():
    by_hour = [1 if 4 <= hour < 22 else 0 for hour in range(24)]
    assert own.quiet_hours(by_hour) == (22, 0.0)
    assert own.quiet_hours([0] * 24) == (0, 0.0)

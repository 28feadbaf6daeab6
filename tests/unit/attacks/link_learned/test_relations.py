"""The 27 relations of paper 004, Table 3: worked out by hand, and equal to the naive ones everywhere."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querycloak.attacks.link_learned import features, words
from querycloak.attacks.link_learned.relations_kernel import NAMES
from querycloak.attacks.link_learned.words import TermFrequencies
from querycloak.text.normalise import Tokens, normalise_text
from tests.reference import naive_relations as naive

pytestmark = pytest.mark.learn

FRIDAY = datetime(2006, 3, 3, 21, 59)
OTHERS = TermFrequencies.of(pl.DataFrame({"user": ["a", "a"], "query": ["paris hotel hotels map", "map"]}))
PAIR = pl.DataFrame(
    {
        "user": ["u", "u", "u"],
        "query": ["paris hotels porn", "Hotel map lyon recieve", "Hotel map lyon recieve"],
        "time": [FRIDAY, FRIDAY + timedelta(minutes=2), FRIDAY + timedelta(minutes=2)],
        "url": [None, "http://hotels.com", "http://map.org/hotels"],
        "landing": ["paris hotel porn", "paris map porn porn", None],
        "category": ["Recreation/Travel/hotel", "Recreation/Travel", "Reference/Maps/map"],
    }
)
# wordfreq in a billion words: paris 10^4.82, hotel 10^4.95, map 10^4.76, porn 10^4.50
PARIS, HOTEL, MAP, PORN = 4.18, 4.05, 4.24, 4.50
EXPECTED = {
    "D_Time": 120.0,
    "S_WeekWeekend": 1.0,
    "S_SameDaytime": 0.0,  # 20 to 22 o'clock, and 22 to 24
    "D_NumberClicks": 2.0,
    "S_QueryTerms": 1 / 6,  # hotel, of par hotel porn map lyon reciev
    "S_LandPagTerms1": 2 / 5,  # paris and porn, of paris hotel map porn porn
    "S_LandPagTerms2": (PARIS + PORN) / (PARIS + HOTEL + PORN),
    "S_LandPagTerms3": (PARIS * PARIS + PORN * 2 * PORN)
    / (math.hypot(PARIS, HOTEL, PORN) * math.hypot(PARIS, MAP, 2 * PORN)),
    "D_QueryTermLen": 1.0,
    "D_QueryCharacterLen": 5.0,  # 17 and 22
    "S_AdultTerms1": 0.0,
    "S_AdultTerms2": 0.0,
    "S_AdultTerms3": 1.0,
    "S_LandPagAdultTerms": 1 / 2,  # porn once and twice
    "D_SpellingErrors": 1.0,
    "S_SpellingError1": 0.0,
    "S_SpellingError2": 1.0,
    "S_Level2Cat": 1.0,
    "S_Level3Cat": 0.0,
    "D_TreeDistance": (1 + 6) / 2,
    "S_City": 0.0,
    "S_Country": 1.0,
    "S_Location1": 1.0,
    "S_Location2": 0.0,
    "S_UrlTerms": math.nan,  # the first has no click
    "D_QueryTermWeight": 2e5,  # of 5 terms: par 1, hotel 2 = 3; hotel 2, map 2 = 4
    "D_EditDistance": 19.0,  # one to follow with a pencil is below
}


def one(frame: pl.DataFrame, first: int = 0, second: int = 1) -> dict[str, float]:
    found = features.read(frame, OTHERS).relate(np.array([first]), np.array([second]))
    return dict(zip(NAMES, found[0].tolist(), strict=True))


def test_the_relations_are_those_of_the_paper_in_its_order():
    assert list(NAMES) == list(EXPECTED)
    assert len(NAMES) == 27


@pytest.mark.parametrize("name", EXPECTED)
def test_each_relation_has_the_value_worked_out_by_hand(name):
    assert one(PAIR)[name] == pytest.approx(EXPECTED[name], rel=1e-6, nan_ok=True)


def test_addresses_are_compared_by_their_words():
    frame = PAIR.with_columns(url=pl.Series(["http://www.hotels.com/map", *PAIR["url"].to_list()[1:]]))
    assert one(frame)["S_UrlTerms"] == pytest.approx(2 / 3)  # hotels map, and hotels hotels map


def test_edits_are_counted_in_queries_as_typed():
    frame = pl.DataFrame({"user": ["u"] * 4, "query": ["kitten", "sitting", "Sitting", ""]})
    assert [one(frame, *pair)["D_EditDistance"] for pair in ((0, 1), (1, 2), (0, 3), (3, 1))] == [3, 1, 6, 7]


def test_both_with_an_error_an_adult_term_or_a_city_is_told_from_one():
    queries = ["porn recieve paris", "free porn hotles paris texas", "garden"]
    frame = pl.DataFrame({"user": ["u"] * 3, "query": queries})
    both, single = one(frame, 0, 1), one(frame, 0, 2)
    names = ("S_AdultTerms2", "S_AdultTerms3", "S_SpellingError1", "S_SpellingError2", "S_Location1")
    assert [both[name] for name in names] == [1, 0, 1, 0, 1]
    assert [single[name] for name in names] == [0, 1, 0, 1, 0]
    assert (both["S_AdultTerms1"], both["S_City"], both["S_Location2"]) == (0.5, 1, 0)
    assert single["S_Location2"] == 1


def test_saturday_and_monday_are_told_apart_but_not_saturday_and_sunday():
    days = [datetime(2006, 3, day, 12 + day % 2) for day in (4, 5, 6)]
    frame = pl.DataFrame({"user": ["u"] * 3, "query": ["q"] * 3, "time": days})
    assert (one(frame, 0, 1)["S_WeekWeekend"], one(frame, 1, 2)["S_WeekWeekend"]) == (1, 0)
    assert one(frame, 0, 1)["S_SameDaytime"] == 1


def test_only_one_relation_depends_on_who_comes_first():
    here, there = one(PAIR, 0, 1), one(PAIR, 1, 0)
    other = {name for name in here if here[name] != there[name] and not math.isnan(here[name])}
    assert other == {"S_LandPagTerms2"}
    assert there["S_LandPagTerms2"] == pytest.approx((PARIS + 2 * PORN) / (PARIS + MAP + 2 * PORN), rel=1e-6)


def test_what_a_log_does_not_have_is_nan_in_every_relation_on_it():
    bare = one(PAIR[:2].select("user", "query"))
    assert {name for name, value in bare.items() if math.isnan(value)} == {
        *("D_Time", "S_WeekWeekend", "S_SameDaytime", "D_NumberClicks", "S_UrlTerms"),
        *("S_LandPagTerms1", "S_LandPagTerms2", "S_LandPagTerms3", "S_LandPagAdultTerms"),
    }
    without = one(PAIR.with_columns(query=pl.Series([None, "a", "a"]), category=pl.lit(None, pl.String)))
    known = {name for name, value in without.items() if not math.isnan(value)}
    assert known == {
        *("D_Time", "S_WeekWeekend", "S_SameDaytime", "D_NumberClicks", "S_LandPagAdultTerms"),
        *("S_LandPagTerms1", "S_LandPagTerms2", "S_LandPagTerms3"),
    }


def test_no_pairs_give_no_rows():
    none = np.empty(0, np.int64)
    assert features.read(PAIR, OTHERS).relate(none, none).shape == (0, 27)


POOL = [
    "hotel",
    "hotels",
    "paris",
    "france",
    "new",
    "york",
    "city",
    "london",
    "porn",
    "free",
    "recieve",
    "map",
]
some_words = st.lists(st.sampled_from(POOL), max_size=5)
#: Also long ones and ones of letters: strings above 62 characters are compared in another way.
queries = st.one_of(st.none(), some_words.map(" ".join), st.text("ab ", max_size=130), st.text(max_size=9))
one_search = st.fixed_dictionaries(
    {
        "query": queries,
        "after": st.one_of(st.none(), st.integers(0, 10**6)),
        "urls": st.lists(st.sampled_from(POOL), max_size=3, unique=True),
        "landing": st.one_of(st.none(), some_words.map(" ".join)),
        "categories": st.sets(st.sampled_from(["A", "A/b", "A/b/c", "A/b/d/e", "A/x", "B/b/c"]), max_size=3),
    }
)


def as_rows(number: int, search: dict) -> list[dict]:
    """Write a search as rows of a log; one without a time has one row, else rows would be searches."""
    urls, categories = search["urls"] or [None], sorted(search["categories"]) or [None]
    size = 1 if search["after"] is None else max(len(urls), len(categories))
    return [
        {
            "user": f"user {number}",
            "query": search["query"],
            "time": None if search["after"] is None else FRIDAY + timedelta(seconds=search["after"]),
            "url": f"http://www.{urls[row]}.com" if row < len(urls) and urls[row] else None,
            "landing": search["landing"] if row == 0 else None,
            "category": categories[row] if row < len(categories) else None,
        }
        for row in range(size)
    ]


def as_tokens(text: list[str]) -> Tokens:
    return Tokens(np.arange(len(text)), np.array([0, len(text)]), text)


def adult_terms_in(text: list[str]) -> list[str]:
    """Look every run of words up."""
    runs = [" ".join(text[a:b]) for a in range(len(text)) for b in range(a + 1, len(text) + 1)]
    return [run for run in runs if run in features.adult_terms().phrases]


def naively(rows: list[dict]) -> naive.Search:
    """Take the features of a search from its rows, one by one."""
    first = rows[0]
    asked = [word for word in normalise_text(first["query"] or "").split(" ") if word]
    page = (first["landing"] or "").split()
    urls = [row["url"].split(".")[1] for row in rows if row["url"]]
    (cities,), (countries,) = features.cities_and_countries(as_tokens(asked))
    total = sum(OTHERS.counts.values())
    return naive.Search(
        time=first["time"],
        clicks=len(urls),
        query=first["query"],
        terms=words.stems(asked),
        landing=list(zip(words.stems(page), words.rarity(page).tolist(), strict=True)),
        adult=adult_terms_in(asked),
        landing_adult=adult_terms_in(page),
        errors=int(words.misspelt(asked).sum()),
        categories=frozenset(row["category"] for row in rows if row["category"]),
        cities=frozenset(cities),
        countries=frozenset(countries),
        urls=urls,
        popularity=sum(OTHERS.counts.get(term, 0) for term in words.stems(asked)) * 1e6 / total,
    )


SCHEMA = {
    "user": pl.String,
    "query": pl.String,
    "time": pl.Datetime("us"),
    "url": pl.String,
    "landing": pl.String,
    "category": pl.String,
}


@settings(max_examples=150, deadline=None)
@given(st.lists(one_search, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_fast_relations_equal_the_naive_ones_in_any_order_of_pairs(searches, draws):
    rows = [as_rows(number, search) for number, search in enumerate(searches)]
    found = features.read(pl.DataFrame([row for some in rows for row in some], schema=SCHEMA), OTHERS)
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows))]
    draws.shuffle(pairs)
    first, second = np.array(pairs, np.int64).T
    fast, slow = found.relate(first, second), [naively(some) for some in rows]
    for row, (i, j) in zip(fast, pairs, strict=True):
        expected = naive.relations(slow[i], slow[j])
        assert row.tolist() == pytest.approx(
            [float(expected[name]) for name in NAMES], rel=1e-5, abs=1e-6, nan_ok=True
        )


def test_threads_and_pieces_change_nothing(monkeypatch):
    found = features.read(PAIR, OTHERS)
    first, second = np.repeat([0, 1], 2), np.tile([0, 1], 2)
    whole = found.relate(first, second, threads=1)
    monkeypatch.setattr(features, "_PIECE", 1)
    assert np.array_equal(found.relate(first, second, threads=3), whole, equal_nan=True)

"""The 16 features of paper 004, Table 2, each against values worked out by hand."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import polars as pl
import pytest

from querycloak.attacks.link_learned import features as events
from querycloak.attacks.link_learned import relations_kernel as kernel
from querycloak.attacks.link_learned import words
from querycloak.attacks.link_learned.words import TermFrequencies
from querycloak.errors import MissingExtra

pytestmark = pytest.mark.learn

SATURDAY = datetime(2006, 3, 4, 21, 59, 7)
#: Others asked for ten terms: `hotel` (as `hotels`, too) three times, `paris` twice.
OTHERS = TermFrequencies.of(
    pl.DataFrame(
        {
            "user": ["a", "a", "b", "c"],
            "query": ["paris hotels", "hotel guide map", "hotel in paris", "garden shed"],
        }
    )
)
#: One search with two clicks, in two rows; then one without a click.
LOG = pl.DataFrame(
    {
        "user": ["u", "u", "u"],
        "query": ["Free porn, Paris HOTELS hotel recieve", "Free porn, Paris HOTELS hotel recieve", "x"],
        "time": [SATURDAY, SATURDAY, datetime(2006, 3, 6, 0, 0)],
        "rank": [1, 3, None],
        "url": ["http://www.sex-hotels.com/sex/index.html", "https://zlxx.org", None],
        "landing": ["Porn in Paris: porn, hotel", None, None],
        "category": ["Adult/Images", "Recreation/Travel/hotel", None],
    }
)
EXPECTED = {
    "TimeQuery": SATURDAY,
    "DayWeek": 6,
    "TimeDay": 21,
    "NumClicks": 2,
    "TFQuery": {"fre": 1, "porn": 1, "par": 1, "hotel": 2, "reciev": 1},
    "TFLandingPage": {"porn": 2, "in": 1, "par": 1, "hotel": 1},
    "NumQueryTerms": 6,
    "NumQueryChar": 37,
    "TFQueryAdult": {"free porn": 1, "porn": 1},
    "TFLandingPageAdult": {"porn": 2},
    "NumSpellingErrors": 1,
    "TopicODP": ["Adult/Images", "Recreation/Travel/hotel"],
    "CitiesQuery": ["Paris"],
    "CountriesQuery": ["France"],
    "TFURL": {"sex": 2, "hotels": 1, "zlxx": 1},
    # paris 2 of 10, hotel 3 of 10 and it stands twice: (2 + 3 + 3) / 10 of a million
    "QueryTermPopularity": 800_000.0,
}


def bag(named, search):
    """Return the things of one search by name, with their counts."""
    first, last = named.bags.start[search : search + 2]
    names = [named.names[item] for item in named.bags.item[first:last]]
    return dict(zip(names, named.bags.times[first:last], strict=True))


def features(frame: pl.DataFrame, row: int = 0, known: TermFrequencies = OTHERS) -> dict[str, object]:
    """Return the features of one search under the paper's names; None where one is not known."""
    read = events.read(frame, known)
    when = read.searches.column("time").cast(pl.Datetime("us"))[row]
    bags = {
        "TFQuery": read.terms,
        "TFLandingPage": read.landing,
        "TFQueryAdult": read.adult,
        "TFLandingPageAdult": read.landing_adult,
        "TFURL": read.urls,
    }
    lists = {
        "TopicODP": read.categories.paths,
        "CitiesQuery": read.cities,
        "CountriesQuery": read.countries,
    }
    numbers = {
        "NumClicks": kernel.CLICKS,
        "NumQueryTerms": kernel.TERMS,
        "NumQueryChar": kernel.CHARACTERS,
        "NumSpellingErrors": kernel.ERRORS,
        "QueryTermPopularity": kernel.POPULARITY,
    }
    found = {
        "TimeQuery": when,
        "DayWeek": when and when.isoweekday(),
        "TimeDay": None if when is None else when.hour,
    }
    found |= {name: bag(named, row) for name, named in bags.items()}
    found |= {name: sorted(bag(named, row)) for name, named in lists.items()}
    found |= {name: float(read.numbers[row, column]) for name, column in numbers.items()}
    unknown = {name for name, column in numbers.items() if np.isnan(read.numbers[row, column])}
    unknown |= (
        {"TFQuery", "TFQueryAdult", "CitiesQuery", "CountriesQuery"}
        if read.searches.query[row] is None
        else set()
    )
    unknown |= set() if read.landing.sizes[row] else {"TFLandingPage", "TFLandingPageAdult"}
    unknown |= {name for name in ("TopicODP", "TFURL") if not found[name]}
    return {name: None if name in unknown else found[name] for name in EXPECTED}


def test_the_features_are_those_of_the_paper():
    assert len(EXPECTED) == 16


@pytest.mark.parametrize("name", EXPECTED)
def test_each_feature_has_the_value_worked_out_by_hand(name):
    assert features(LOG)[name] == EXPECTED[name]


def test_what_is_not_known_is_null():
    found = features(LOG, 1)
    assert found["NumClicks"] == 0  # the log has clicks, this search none
    assert [name for name, value in found.items() if value is None] == [
        *("TFLandingPage", "TFLandingPageAdult", "TopicODP", "TFURL")
    ]
    assert (found["NumSpellingErrors"], found["CitiesQuery"]) == (0, [])  # known, and nothing there


def test_a_log_of_queries_alone_has_no_behaviour():
    found = features(LOG.select("user", "query"))
    lost = {"TimeQuery", "DayWeek", "TimeDay", "NumClicks", "TFLandingPage", "TFLandingPageAdult", "TFURL"}
    assert {name for name, value in found.items() if value is None} == lost


def test_a_search_without_a_query_keeps_its_time_and_clicks():
    found = features(LOG.with_columns(query=pl.lit(None, pl.String)))
    of_query = {name for name in EXPECTED if "Query" in name} - {"TimeQuery"} | {"NumSpellingErrors"}
    assert {name for name, value in found.items() if value is None} == of_query
    assert found["NumClicks"] == 2


def test_nothing_known_of_others_leaves_the_popularity_open():
    assert features(LOG, known=TermFrequencies())["QueryTermPopularity"] is None


def test_rows_of_one_person_query_and_time_are_one_search():
    assert events.read(LOG, OTHERS).searches.of_row.tolist() == [0, 0, 1]
    apart = LOG.with_columns(user=pl.Series(["u", "v", "u"]))
    assert events.read(apart, OTHERS).searches.of_row.tolist() == [0, 1, 2]
    timeless = LOG.with_columns(time=pl.lit(None, pl.Datetime("us")))
    assert events.read(timeless, OTHERS).searches.of_row.tolist() == [0, 1, 2]
    assert events.read(LOG.drop("time"), OTHERS).searches.of_row.tolist() == [0, 1, 2]


def test_without_pages_their_addresses_speak_and_the_events_say_so():
    assert events.read(LOG, OTHERS).landing_from == "landing"
    by_address = events.read(LOG.drop("landing"), OTHERS)
    assert by_address.landing_from == "url"
    assert bag(by_address.landing, 0) == {"sex": 2, "hotel": 1, "zlxx": 1}
    assert events.read(LOG.drop("landing", "url"), OTHERS).landing_from == "nothing"


def test_without_a_column_the_classifier_names_the_categories_of_query_and_pages():
    frame = pl.DataFrame(
        {"user": ["u"], "query": ["cheap hotel paris"], "url": ["http://www.asthma.org/inhaler"]}
    )
    asthma, hotel = features(frame)["TopicODP"]
    assert (asthma.split("/")[0], hotel) == ("Health", "Recreation/Travel/hotel")


def test_at_most_eight_pages_of_a_search_are_read():
    frame = pl.DataFrame(
        {
            "user": ["u"] * 9,
            "query": ["q"] * 9,
            "time": [SATURDAY] * 9,
            "url": [f"http://w{n}.com" for n in range(9)],
        }
    )
    found = features(frame)
    assert (found["NumClicks"], len(found["TFURL"])) == (9, 8)


def test_a_country_is_also_known_by_its_city():
    frame = pl.DataFrame({"user": ["u"] * 2, "query": ["new york city to london", "holland"]})
    first, second = features(frame), features(frame, 1)
    assert first["CitiesQuery"] == ["London", "New York"]
    assert first["CountriesQuery"] == ["England", "United Kingdom", "United States"]
    assert (second["CitiesQuery"], second["CountriesQuery"]) == ([], ["Netherlands"])


def test_an_empty_log_has_no_events():
    found = events.read(LOG.clear(), OTHERS)
    assert (len(found), found.numbers.shape[0], found.terms.sizes.size) == (0, 0, 0)


def test_words_that_no_dictionary_knows_are_misspelt_but_forms_and_numbers_are_not():
    asked = ["hotles", "definately", "hotels", "kayaks", "hiking", "shopped", "berries", "2006", "b2b", "x"]
    assert words.misspelt(asked).tolist() == [True, True] + [False] * 8


def test_rarity_is_the_logarithm_of_one_in_how_many():
    # wordfreq gives `paris` 10^4.82 in a billion words, and does not know the last
    assert np.allclose(words.rarity(["paris", "zzqxv"]), [9 - 4.82, 8.0])


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setattr(words, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="needs the extra `learn`"):
        words.stems(["hotel"])

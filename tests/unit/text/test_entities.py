"""Entities in queries, and the list of cities and countries."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.text.entities import KINDS, Place, find_entities, places
from querycloak.text.normalise import normalise_text


def test_a_city_lies_in_its_countries_and_a_country_is_no_city():
    assert places()["london"] == Place("London", ("England", "United Kingdom"))
    assert places()["new york city"] == places()["new york"]
    assert places()["holland"] == Place(None, ("Netherlands",))


def test_names_are_in_plain_form_and_words_of_other_meanings_are_left_out():
    assert all(name == normalise_text(name) for name in places())
    assert not {"nice", "us", "reading", "bath", "georgia"} & set(places())


def test_the_list_has_cities_of_most_countries():
    cities = {place.city for place in places().values() if place.city}
    countries = {place.countries[0] for place in places().values() if place.countries}
    assert len(cities) > 1000
    assert len(countries) > 180


def kinds_in(text, listed=()):
    found = find_entities(pl.Series([text], dtype=pl.String), list(KINDS), frozenset(listed))[0]
    return {kind for kind, hit in zip(KINDS, found, strict=True) if hit}


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("garden chairs", set()),
        (None, set()),
        ("windows 98", {"digit"}),
        ("jo@made-up.example", {"email"}),
        ("4111 1111 1111 1111", {"card", "digit"}),
        ("555 0199", {"phone", "digit"}),
        ("5550199\u00a0 7", {"phone", "digit"}),
        ("1" * 16 + " x", {"digit"}),
        ("smith, mary", {"name"}),
        ("MARY O'CONNOR", {"name"}),
        ("hotels in new york", {"place"}),
        ("project falcon", {"listed"}),
        ("Próject-Falcon", {"listed"}),
        ("12 oak street", {"street", "digit"}),
        ("pizza near 1600a Long Beach Ave now", {"street", "digit"}),
        ("5 st. marys road", {"street", "digit"}),
    ],
)
def test_the_kinds_of_entities(text, kinds):
    assert kinds_in(text, ["Project Falcon", ""]) - {"place"} | ({"place"} & kinds) == kinds


@pytest.mark.parametrize("text", ["oak street", "iphone 12", "12 angry men", "street 12"])
def test_other_numbers_are_no_addresses(text):
    assert "street" not in kinds_in(text)


def naive_luhn(digits):
    doubled = [int(d) if i % 2 == 0 else sum(divmod(2 * int(d), 10)) for i, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


@given(st.text("0123456789", min_size=13, max_size=30))
def test_card_numbers_are_those_of_the_naive_twin(digits):
    windows = [digits[i : i + n] for n in range(13, 20) for i in range(len(digits) - n + 1)]
    assert ("card" in kinds_in(digits)) == any(map(naive_luhn, windows))

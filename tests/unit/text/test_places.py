"""The shipped list of cities and countries."""

from __future__ import annotations

from querycloak.text.normalise import normalise_text
from querycloak.text.places import Place, places


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

"""Phrases of lists inside texts: adult terms, cities and countries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from querycloak.text.entities import places
from querycloak.text.normalise import PhraseSet
from querycloak.text.taxonomy import load


@cache
def adult() -> PhraseSet:
    """Return the adult terms: phrases whose strongest category is Adult and curated."""
    taxonomy = load()
    first = taxonomy.lexicon.start[:-1]
    strongest = taxonomy.lexicon.node[first]
    theirs = (taxonomy.at_level(strongest, 1) == taxonomy.node("Adult")) & taxonomy.lexicon.curated[first]
    listed = zip(taxonomy.lexicon.texts, theirs.tolist(), strict=True)
    return PhraseSet(text for text, hit in listed if hit)


@cache
def _places() -> PhraseSet:
    return PhraseSet(places())


def cities_and_countries(words: Sequence[str]) -> tuple[Collection[str], Collection[str]]:
    """Return the cities in a text, and the countries in it, those of its cities included."""
    found = [places()[phrase] for phrase in _places().longest_in(words)]
    cities = {place.city for place in found if place.city}
    return cities, {country for place in found for country in place.countries}

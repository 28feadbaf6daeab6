"""Builds the list of cities and countries that ships with QueryCloak from a WordNet 3.0 `dict` folder.

Usage: python tools/build_places.py WORDNET_DICT [-o FILE]

A city is whatever WordNet calls an instance of a municipality or a capital; its countries are those that it
is part of, the nearest first. A city's name counts only where the city is its first meaning.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from querycloak.text.normalise import normalise_text  # noqa: E402
from taxonomy import wordnet  # noqa: E402

OUTPUT = HERE.parent / "src" / "querycloak" / "topics" / "data" / "places.csv"
CITIES = ("municipality.n.01", "city.n.01", "capital.n.03")
COUNTRIES = ("country.n.02",)
#: Not one country, or so called by nobody who searches.
NO_COUNTRIES = frozenset({"Balkans", "Union", "Rus", "Aram", "Albion", "Etruria", "Asian Russia", "Logrono"})
#: Words that mostly mean something else in a search; WordNet's order of senses knows nouns only.
WORDS = frozenset(
    ("bam", "cologne", "frederick", "gary", "georgia", "nancy", "nice", "pierre", "regina", "santos", "sur")
) | frozenset(("tara", "tours", "toyota", "tyre", "us"))

Row = tuple[str, str, str]


class Places:
    """WordNet's places: which are cities, which are countries, and what is part of what."""

    def __init__(self, nouns: wordnet.WordNet) -> None:
        self._nouns = nouns
        self.cities = self._instances(CITIES)
        self.countries = {c for c in self._instances(COUNTRIES) if self.name(c) not in NO_COUNTRIES}

    def name(self, place: int) -> str:
        """Give the main name of a place."""
        return self._nouns.synsets[place].lemmas[0]

    def _instances(self, classes: tuple[str, ...]) -> set[int]:
        wanted = {self._nouns.find(name) for name in classes}
        named = (i for i, synset in enumerate(self._nouns.synsets) if synset.instance)
        return {i for i in named if wanted & set(self._above(i, "parents"))}

    def _above(self, place: int, link: str) -> list[int]:
        """List what lies above a place by a kind of link, the nearest first."""
        found, at = [place], 0
        while at < len(found):
            found += [i for i in getattr(self._nouns.synsets[found[at]], link) if i not in found]
            at += 1
        return found

    def rows(self) -> Iterator[Row]:
        """Give (phrase, city, countries) for every name of every city and country."""
        for place in sorted(self.cities | self.countries):
            countries = [self.name(i) for i in self._above(place, "wholes") if i in self.countries]
            city = self.name(place) if place in self.cities else ""
            for lemma in self._nouns.synsets[place].lemmas:
                if place in self.countries or self._means_first(lemma, place):
                    yield normalise_text(lemma), city, ";".join(dict.fromkeys(countries))

    def _means_first(self, lemma: str, place: int) -> bool:
        return self._nouns.senses[lemma.lower().replace(" ", "_")][0] == place


def rows(folder: Path) -> list[Row]:
    """Give the rows in alphabetical order, one for each phrase; a country goes before a city."""
    found: dict[str, Row] = {}
    for row in sorted(Places(wordnet.read(folder)).rows(), key=lambda row: (row[0], row[1] != "", row)):
        if row[0] not in WORDS:
            found.setdefault(row[0], row)
    return list(found.values())


def main() -> None:
    """Write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="WordNet's `dict` folder")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    asked = parser.parse_args()
    with asked.output.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("phrase", "city", "countries"))
        table.writerows(rows(asked.folder))


if __name__ == "__main__":
    main()

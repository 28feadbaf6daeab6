"""Decides where each synset goes: to its own anchor, its region, its topic, or below its hypernym."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from taxonomy.wordnet import WordNet

#: An anchor below this weight only says "nothing better is known", so any better route goes first.
STRONG = 0.6
NO_PARENT = -1
LOCATION, OBJECT = 15, 17
LANGUAGE = "natural_language.n.01"


@dataclass(frozen=True)
class Place:
    """A category, how sure it is, and the hypernym to hang below (or none: directly below the domain)."""

    category: str
    weight: float
    parent: int = NO_PARENT


def read_anchors(path: Path, wordnet: WordNet) -> dict[int, Place]:
    """Read `synset,category,weight`; an unknown synset stops the build."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    anchors = {wordnet.find(row["synset"]): Place(row["category"], float(row["weight"] or 1)) for row in rows}
    if len(anchors) != len(rows):
        raise ValueError("two anchors name the same synset")
    return anchors


class Placer:
    """Places synsets one by one; what is above, around or behind a synset is placed on the way."""

    def __init__(self, wordnet: WordNet, anchors: dict[int, Place]) -> None:
        self.synsets = wordnet.synsets
        self.anchors = anchors
        self.languages = wordnet.find(LANGUAGE)
        self._places: dict[int, Place] = {}
        self._under_way: set[int] = set()

    def place(self, index: int) -> Place:
        """Give a synset's place."""
        if index not in self._places:
            self._under_way.add(index)
            self._places[index] = self._decide(index)
            self._under_way.discard(index)
        return self._places[index]

    def _decide(self, index: int) -> Place:
        above = self._inherited(index)
        chosen = self.anchors.get(index) or self._region(index) or self._topic(index)
        if chosen is None:
            return above
        same = chosen.category == above.category
        return Place(chosen.category, chosen.weight, above.parent if same else NO_PARENT)

    def _inherited(self, index: int) -> Place:
        """Follow the first hypernym with a strong place, or simply the first."""
        options = [(parent, self.place(parent)) for parent in self.synsets[index].parents]
        if not options:
            return self.anchors[index]
        parent, place = next((pair for pair in options if pair[1].weight >= STRONG), options[0])
        return Place(place.category, place.weight, parent)

    def _region(self, index: int) -> Place | None:
        """Put a river, town or state where the country or continent it is part of lies."""
        synset = self.synsets[index]
        if not synset.instance or synset.file not in (LOCATION, OBJECT):
            return None
        for whole in synset.wholes:
            if whole not in self._under_way and self._is_regional(self.place(whole)):
                return Place(self.place(whole).category, 1.0)
        return None

    def _is_regional(self, place: Place) -> bool:
        return place.category.startswith("Regional/") and place.weight >= STRONG

    def _topic(self, index: int) -> Place | None:
        """Use WordNet's own topic link, unless it names a language (that says where a word comes from)."""
        for target in self.synsets[index].topics:
            if target not in self._under_way and not self._is_language(target):
                place = self.place(target)
                if place.weight >= STRONG:
                    return Place(place.category, place.weight)
        return None

    def _is_language(self, index: int) -> bool:
        return index == self.languages or any(map(self._is_language, self.synsets[index].parents))

"""Names of cities and countries, and which country a city lies in."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LIST = Path(__file__).parent / "data" / "places.csv"


@dataclass(frozen=True)
class Place:
    """What a name stands for: a city (none for a country) and its countries, the nearest first."""

    city: str | None
    countries: tuple[str, ...]


@cache
def places() -> dict[str, Place]:
    """Give the places by name, in the plain form of `normalise`; made by `tools/build_places.py`."""
    with LIST.open(encoding="utf-8", newline="") as file:
        return {
            row["phrase"]: Place(row["city"] or None, tuple(filter(None, row["countries"].split(";"))))
            for row in csv.DictReader(file)
        }

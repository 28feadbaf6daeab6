"""Invented names of users, towns, regions, streets and sites, composed of syllables."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count as count_up

from querycloak.synthetic.rng import stream

# Clusters that are rare in real names and brands, so that a match with one is an accident.
_ONSETS = ["vr", "zh", "skr", "dw", "kv", "vl", "zv", "fj", "zl", "vy", "mr", "tl", "zb", "ghr", "thw", "vw"]
_SOFT = ["b", "d", "f", "g", "j", "k", "l", "m", "n", "p", "r", "t", "v", "z"]
_VOWELS = ["a", "e", "i", "o", "u", "ae", "io", "ua", "ei", "oo"]
_CODAS = ["x", "nd", "rm", "lk", "sk", "mp", "rv", "ln", "nt", "rk", "zz", "st", "lt", "rn"]
_FIRST_ENDS = ["a", "en", "is", "or", "ette", "in", "ula", "ey", "o", "iel"]
_LAST_ENDS = ["ovar", "stead", "wick", "mond", "ley", "erson", "isk", "and", "ulm", "ett", "orn", "aze"]
_TOWN_ENDS = ["ville", "ton", "burg", "field", "port", "haven", "mere", "ford", "wood", "dale"]
_SITE_ENDS = [
    "mail",
    "shop",
    "maps",
    "web",
    "net",
    "hub",
    "spot",
    "zone",
    "world",
    "online",
    "store",
    "chat",
    "games",
    "news",
    "bank",
]

STREET_KINDS = ("st", "ave", "lane", "rd", "drive", "court", "blvd")

#: The parts of a name of each kind, in order.
_RECIPES: dict[str, tuple[list[str], ...]] = {
    "first": (_ONSETS, _VOWELS, _SOFT, _FIRST_ENDS),
    "last": (_ONSETS, _VOWELS, _CODAS, _LAST_ENDS),
    "town": (_ONSETS, _VOWELS, _SOFT, _VOWELS, _TOWN_ENDS),
    "region": (_ONSETS, _VOWELS, _SOFT, _VOWELS, _CODAS),
    "street": (_ONSETS, _VOWELS, _CODAS, ["er", "ing", "el", "ow"]),
    "site": (_ONSETS, _VOWELS, _SOFT, [*_SITE_ENDS, "", "", ""]),
    "long site": (_ONSETS, _VOWELS, _SOFT, _VOWELS, _CODAS, [*_SITE_ENDS, "", ""]),
}


def make_names(kind: str, count: int, taken: Collection[str]) -> list[str]:
    """Make `count` different names of a kind, none of them in `taken`; always the same ones."""
    rng = stream(0, 0, f"names of {kind}")
    draws = (draw for _ in count_up() for draw in rng.random(4_096).tolist())
    ending, made = "ia" if kind == "region" else "", dict[str, None]()
    while len(made) < count:
        name = "".join(choices[int(next(draws) * len(choices))] for choices in _RECIPES[kind]) + ending
        if name not in taken:
            made[name] = None
    return list(made)

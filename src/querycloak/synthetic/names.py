"""Names that nobody bears: people, towns, regions, streets and sites from invented syllables."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import count as count_up

from querycloak.synthetic.streams import stream

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

Maker = Callable[[Callable[[list[str]], str]], str]


def _first(pick: Callable[[list[str]], str]) -> str:
    return pick(_ONSETS) + pick(_VOWELS) + pick(_SOFT) + pick(_FIRST_ENDS)


def _last(pick: Callable[[list[str]], str]) -> str:
    return pick(_ONSETS) + pick(_VOWELS) + pick(_CODAS) + pick(_LAST_ENDS)


def _town(pick: Callable[[list[str]], str]) -> str:
    return pick(_ONSETS) + pick(_VOWELS) + pick(_SOFT) + pick(_VOWELS) + pick(_TOWN_ENDS)


def _region(pick: Callable[[list[str]], str]) -> str:
    return pick(_ONSETS) + pick(_VOWELS) + pick(_SOFT) + pick(_VOWELS) + pick(_CODAS) + "ia"


def _street(pick: Callable[[list[str]], str]) -> str:
    return pick(_ONSETS) + pick(_VOWELS) + pick(_CODAS) + pick(["er", "ing", "el", "ow"])


def _site(pick: Callable[[list[str]], str]) -> str:
    return pick(_ONSETS) + pick(_VOWELS) + pick(_SOFT) + pick([*_SITE_ENDS, "", "", ""])


def _long_site(pick: Callable[[list[str]], str]) -> str:
    return (
        pick(_ONSETS)
        + pick(_VOWELS)
        + pick(_SOFT)
        + pick(_VOWELS)
        + pick(_CODAS)
        + pick([*_SITE_ENDS, "", ""])
    )


_MAKERS: dict[str, Maker] = {
    "first": _first,
    "last": _last,
    "town": _town,
    "region": _region,
    "street": _street,
    "site": _site,
    "long site": _long_site,
}


def make_names(kind: str, count: int, taken: Collection[str]) -> list[str]:
    """Make `count` different names of a kind, none of them in `taken`; always the same ones."""
    rng = stream(0, 0, f"names of {kind}")
    draws = (draw for _ in count_up() for draw in rng.random(4_096).tolist())
    maker, made = _MAKERS[kind], dict[str, None]()
    while len(made) < count:
        name = maker(lambda choices: choices[int(next(draws) * len(choices))])
        if name not in taken:
            made[name] = None
    return list(made)

"""The fixed world of a synthetic log: words by topic, names, towns and sites; the same for every seed.

Every text of which a query can consist is a *piece* with a number; queries are rows of numbers until the
end. A *domain* is the first two levels of a category (`Recreation/Pets`). Users have categories as
interests; they use the words of the whole domain, those of the category itself more often.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count
from typing import Any

import numpy as np
import polars as pl

from querycloak.synthetic.rng import BLOCK_USERS, FloatArray, IntArray, mix, stream


@cache
def phrases() -> dict[str, Any]:
    """Return the small words around a topic: what stands before and after it in queries."""
    return tomllib.loads(files("querycloak.synthetic").joinpath("data", "phrases.toml").read_text("utf-8"))


#: Domains about living people and about real sites are left out: the log has invented ones.
LEFT_OUT = frozenset(
    {"Arts/Celebrities", "Computers/Portals", "Computers/Search", "Computers/Social Networks"}
)
#: What people, places and private texts are filed under, if the vocabulary has it.
PEOPLE = ("Society/People", "Society/Genealogy", "Society")
PLACES = ("Regional/Cities", "Regional")
#: A domain's own words get this share of its interest; the rest goes to the categories below.
GENERAL = 0.5


@dataclass(frozen=True)
class Runs:
    """For each index, a run of numbers: `first`, `first + 1`, ... (`size` of them)."""

    first: IntArray
    size: IntArray

    @classmethod
    def of_sizes(cls, sizes: IntArray) -> Runs:
        """Lay runs of the given sizes end to end."""
        return cls(np.cumsum(sizes) - sizes, sizes)

    def __getitem__(self, chosen: IntArray) -> Runs:
        return Runs(self.first[chosen], self.size[chosen])


@dataclass(frozen=True)
class TopicMap:
    """Categories and domains by number, with their words and sites.

    `words` are runs of pieces by category; `common` are runs in `common_words` by domain, the common ones
    first; `sites` are runs in `sites_by_domain`.
    """

    paths: pl.Series
    domain: IntArray
    popularity: FloatArray  # running totals over categories
    words: Runs
    category_of_word: IntArray
    common: Runs
    common_words: IntArray
    suffixes: Runs  # by category, runs of pieces
    category_of_site: IntArray
    sites: Runs
    sites_by_domain: IntArray
    of_people: int
    of_places: int


def tidy_vocabulary(vocabulary: dict[str, list[str]]) -> dict[str, list[str]]:
    """Write words in lower case, drop doubles, and leave out what the log must not hold."""
    kept = {
        path: list(dict.fromkeys(" ".join(word.replace("_", " ").lower().split()) for word in words))
        for path, words in vocabulary.items()
        if words and domain_of(path) not in LEFT_OUT
    }
    return dict(sorted(kept.items(), key=lambda item: (domain_of(item[0]), item[0])))


def domain_of(path: str) -> str:
    """Return the first two levels of a category."""
    return "/".join(path.split("/", 2)[:2])


def map_topics(vocabulary: dict[str, list[str]], suffixes: Runs, sites: int) -> TopicMap:
    """Number the categories and domains of a tidy vocabulary, and share words and sites among them."""
    paths = list(vocabulary)
    names, domain = np.unique([domain_of(path) for path in paths], return_inverse=True)
    sizes = np.array([len(words) for words in vocabulary.values()], np.int64)
    common_words, common = _common(sizes, domain, len(names))
    popularity = np.cumsum(_popularity(paths, sizes, domain))
    chance = popularity[-1] * (mix(np.arange(sites), 1) / 2.0**63)
    category_of_site = np.searchsorted(popularity, chance, side="right").astype(np.int64)
    counts = np.bincount(domain[category_of_site], minlength=len(names)).astype(np.int64)
    return TopicMap(
        paths=pl.Series("category", paths, dtype=pl.String),
        domain=domain.astype(np.int64),
        popularity=popularity,
        words=Runs.of_sizes(sizes),
        category_of_word=np.repeat(np.arange(len(paths)), sizes),
        common=common,
        common_words=common_words,
        suffixes=suffixes,
        category_of_site=category_of_site,
        sites=Runs.of_sizes(counts),
        sites_by_domain=np.argsort(domain[category_of_site], kind="stable").astype(np.int64),
        of_people=_anchor(paths, PEOPLE),
        of_places=_anchor(paths, PLACES),
    )


def _common(sizes: IntArray, domain: IntArray, domains: int) -> tuple[IntArray, Runs]:
    """Order the words of each domain: its own first, then the first of each category, the second, ..."""
    category = np.repeat(np.arange(sizes.size), sizes)
    rank = np.arange(category.size) - (np.cumsum(sizes) - sizes)[category]
    is_general = np.diff(domain, prepend=-1)[category] != 0  # the shortest path of a domain sorts first
    order = np.lexsort((category, rank, ~is_general, domain[category]))
    counts = np.bincount(domain[category], minlength=domains).astype(np.int64)
    return order.astype(np.int64), Runs.of_sizes(counts)


def _popularity(paths: list[str], sizes: IntArray, domain: IntArray) -> FloatArray:
    """Share a level-1 topic's popularity among its domains, and a domain's among its categories."""
    tops, top = np.unique([path.partition("/")[0] for path in paths], return_inverse=True)
    share = np.array([phrases()["topic_shares"].get(name, 1) for name in tops.tolist()], np.float64)
    appeal = np.log1p(np.bincount(domain, weights=sizes))
    appeal *= np.exp(0.8 * stream(0, 0, "appeal").standard_normal(appeal.size))
    general = np.diff(domain, prepend=-1) != 0
    below = np.where(general, 0.0, np.sqrt(sizes))
    total = np.bincount(domain, weights=below)[domain]
    within = np.where(general, GENERAL, (1.0 - GENERAL) * below / np.maximum(total, 1e-9))
    weight = within * appeal[domain]
    return np.asarray(weight * share[top] / np.bincount(top, weights=weight)[top], np.float64)


def _anchor(paths: list[str], wanted: tuple[str, ...]) -> int:
    """Find the first category at or below one of the wanted ones, or simply the first category."""
    below = ([f"{path}/".startswith(f"{name}/") for path in paths] for name in wanted)
    return next((found.index(True) for found in below if any(found)), 0)


# Syllables of invented names: clusters that are rare in real names and brands, so that a match with one is
# an accident. The order matters: names are drawn by place.
_ONSETS = ["vr", "zh", "skr", "dw", "kv", "vl", "zv", "fj", "zl", "vy", "mr", "tl", "zb", "ghr", "thw", "vw"]
_SOFT = list("bdfgjklmnprtvz")
_VOWELS = ["a", "e", "i", "o", "u", "ae", "io", "ua", "ei", "oo"]
_CODAS = ["x", "nd", "rm", "lk", "sk", "mp", "rv", "ln", "nt", "rk", "zz", "st", "lt", "rn"]
_LAST_ENDS = ["ovar", "stead", "wick", "mond", "ley", "erson", "isk", "and", "ulm", "ett", "orn", "aze"]
_TOWN_ENDS = ["ville", "ton", "burg", "field", "port", "haven", "mere", "ford", "wood", "dale"]
_SITE_ENDS = ["mail", "shop", "maps", "web", "net", "hub", "spot", "zone", "world", "online", "store", "chat"]
_SITE_ENDS += ["games", "news", "bank"]
STREET_KINDS = ("st", "ave", "lane", "rd", "drive", "court", "blvd")
#: The parts of a name of each kind, in order.
_RECIPES: dict[str, tuple[list[str], ...]] = {
    "first": (_ONSETS, _VOWELS, _SOFT, ["a", "en", "is", "or", "ette", "in", "ula", "ey", "o", "iel"]),
    "last": (_ONSETS, _VOWELS, _CODAS, _LAST_ENDS),
    "town": (_ONSETS, _VOWELS, _SOFT, _VOWELS, _TOWN_ENDS),
    "region": (_ONSETS, _VOWELS, _SOFT, _VOWELS, _CODAS, ["ia"]),
    "street": (_ONSETS, _VOWELS, _CODAS, ["er", "ing", "el", "ow"]),
    "site": (_ONSETS, _VOWELS, _SOFT, [*_SITE_ENDS, "", "", ""]),
    "long site": (_ONSETS, _VOWELS, _SOFT, _VOWELS, _CODAS, [*_SITE_ENDS, "", ""]),
}


def make_names(kind: str, wanted: int, taken: Collection[str]) -> list[str]:
    """Make different names of a kind, none of them in `taken`; always the same ones."""
    rng, made = stream(0, 0, f"names of {kind}"), dict[str, None]()
    draws = (draw for _ in count() for draw in rng.random(4_096).tolist())
    while len(made) < wanted:
        parts = (part[int(next(draws) * len(part)) if len(part) > 1 else 0] for part in _RECIPES[kind])
        if (name := "".join(parts)) not in taken:
            made[name] = None
    return list(made)


SITES, HEAD_SITES = 60_000, 1_500
FIRST_NAMES, LAST_NAMES, TOWNS, REGIONS, STREETS = 500, 5_000, 1_500, 40, 900
#: The ways to type a site, of the kind "%" = its name.
SITE_FORMS = ("%", "%.com", "www.%.com", "http://www.%.com", "% com", "www %")


@dataclass(frozen=True)
class Range:
    """A run of piece numbers: `first`, `first + 1`, ... `first + size - 1`."""

    first: int
    size: int


@dataclass(frozen=True)
class World:
    """All pieces of text, where each kind of them lies, and the topics."""

    pieces: pl.Series
    ranges: dict[str, Range]
    urls: pl.Series
    topics: TopicMap
    streets: list[str]

    def texts(self, kind: str) -> list[str]:
        """Return the pieces of one kind as texts."""
        run = self.ranges[kind]
        return self.pieces.slice(run.first, run.size).to_list()


@cache
def world() -> World:
    """Build the world around the taxonomy's vocabulary, once per process."""
    from querycloak import text

    return build(text.vocabulary())


def build(vocabulary: dict[str, list[str]]) -> World:
    """Build a world around words by category (`{"Sports/Soccer": ["soccer ball", ...]}`)."""
    words_by_path = tidy_vocabulary(vocabulary)
    taken = {word for words in words_by_path.values() for word in words}
    kinds = {"word": [word for words in words_by_path.values() for word in words], **_invented(taken)}
    sizes = np.array([len(texts) for texts in kinds.values()])
    starts = np.cumsum(sizes) - sizes
    ranges = {
        kind: Range(int(start), int(size)) for kind, start, size in zip(kinds, starts, sizes, strict=True)
    }
    names = kinds["site"][:SITES]
    return World(
        pieces=pl.Series("piece", [text for texts in kinds.values() for text in texts], dtype=pl.String),
        ranges=ranges,
        urls=pl.Series("url", [f"http://www.{name}.{_ending(i)}" for i, name in enumerate(names)]),
        topics=map_topics(words_by_path, _fitting(words_by_path, ranges), SITES),
        streets=_streets(taken),
    )


def _ending(site: int) -> str:
    return ("com", "com", "com", "com", "com", "com", "net", "org")[site % 8] if site >= 50 else "com"


def _invented(taken: set[str]) -> dict[str, list[str]]:
    """Make the pieces that come from no dictionary."""
    words, towns = phrases(), make_names("town", TOWNS, taken)
    head = make_names("site", HEAD_SITES, taken)
    sites = head + make_names("long site", SITES - HEAD_SITES, taken | set(head))
    return {
        "prefix": words["prefixes"],
        "suffix": words["suffixes"],
        **{f"fitting {top}": texts for top, texts in words["fitting"].items()},
        "site suffix": words["site_suffixes"],
        "fragment": words["fragments"],
        "first": make_names("first", FIRST_NAMES, taken),
        "last": make_names("last", LAST_NAMES, taken),
        "town": towns,
        "in town": [f"in {town}" for town in towns],
        "region": make_names("region", REGIONS, taken),
        "site": [form.replace("%", site) for form in SITE_FORMS for site in sites],
    }


def _streets(taken: set[str]) -> list[str]:
    names = make_names("street", STREETS, taken)
    return [f"{name} {STREET_KINDS[i % len(STREET_KINDS)]}" for i, name in enumerate(names)]


def _fitting(paths: Iterable[str], ranges: dict[str, Range]) -> Runs:
    """Find the small words that go with the area of each category."""
    runs = [ranges.get(f"fitting {path.partition('/')[0]}", ranges["suffix"]) for path in paths]
    return Runs(
        np.array([run.first for run in runs], np.int64), np.array([run.size for run in runs], np.int64)
    )


@dataclass(frozen=True)
class Block:
    """A block of users, with the seed and the world: users are always drawn by whole blocks."""

    seed: int
    number: int
    world: World

    @property
    def first_user(self) -> int:
        """Number of the block's first user in the whole log."""
        return self.number * BLOCK_USERS

    def stream(self, purpose: str) -> np.random.Generator:
        """Open this block's random stream for one purpose."""
        return stream(self.seed, self.number, purpose)

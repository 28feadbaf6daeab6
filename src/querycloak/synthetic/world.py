"""The fixed world that made-up people search in: words by topic, names, towns and sites.

Every text that a query can be built from is a *piece* with a number; queries are rows of numbers until
the very end. The world is the same for every seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from querycloak.synthetic import phrases
from querycloak.synthetic.names import STREET_KINDS, make_names
from querycloak.synthetic.topicmap import Runs, TopicMap, map_topics, tidy_vocabulary

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
        """Give the pieces of one kind as plain texts."""
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
    towns = make_names("town", TOWNS, taken)
    head = make_names("site", HEAD_SITES, taken)
    sites = head + make_names("long site", SITES - HEAD_SITES, taken | set(head))
    return {
        "prefix": list(phrases.PREFIXES),
        "suffix": list(phrases.SUFFIXES),
        **{f"fitting {top}": list(texts) for top, texts in phrases.FITTING.items()},
        "site suffix": list(phrases.SITE_SUFFIXES),
        "fragment": list(phrases.FRAGMENTS),
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

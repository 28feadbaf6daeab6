"""The topics of the made-up world: which words, sites and small words go with which category.

A *domain* is the first two levels of a category (`Recreation/Pets`). People have categories as interests,
use the words of the whole domain, and are fonder of those of the category itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak.synthetic import phrases
from querycloak.synthetic.streams import FloatArray, IntArray, mix, stream

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
    """Give the first two levels of a category."""
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
    share = np.array([phrases.TOPIC_SHARES.get(name, 1) for name in tops.tolist()], np.float64)
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
    for name in wanted:
        for number, path in enumerate(paths):
            if path == name or path.startswith(f"{name}/"):
                return number
    return 0

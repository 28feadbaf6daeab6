"""The categories of searches, and the tree that they lie on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak.attacks.link_learned.relations_kernel import Bags, Tree
from querycloak.attacks.link_learned.words import Named, gather, of_lists
from querycloak.attacks.searches import Searches
from querycloak.dictionary import ancestors
from querycloak.log import IntArray
from querycloak.text.reader import TextReader
from querycloak.text.taxonomy import load

#: Addresses of a search that are read, as many as the paper's result pages.
MOST_PAGES = 8


@dataclass(frozen=True)
class Categories:
    """Each search's categories by path, those at levels 2 and 3, and the tree of all."""

    paths: Named
    second_level: Bags
    third_level: Bags
    tree: Tree

    @classmethod
    def of(cls, searches: Searches) -> Categories:
        """Take the column `category` where there is one; else ask the classifier."""
        if "category" in searches.frame.columns:
            found = searches.distinct("category")
        else:
            found = pl.concat([_of_queries(searches), _of_addresses(searches)]).unique(maintain_order=True)
        found = found.filter(pl.col("category") != "")
        lists: list[list[str]] = [[] for _ in range(len(searches))]
        for search, path in found.iter_rows():
            lists[search].append(path)
        paths = of_lists(lists)
        tree = Tree(*ancestors(paths.names))
        return cls(paths, _at_level(paths.bags, tree, 2), _at_level(paths.bags, tree, 3), tree)


def pages(searches: Searches) -> pl.DataFrame:
    """Return `search, url` of the first eight different pages that each search led to."""
    return searches.distinct("url").group_by("search", maintain_order=True).head(MOST_PAGES)


def _of_queries(searches: Searches) -> pl.DataFrame:
    asked = searches.query.fill_null("")
    return _spelt_out(np.arange(len(searches)), TextReader().read(asked).category)


def _of_addresses(searches: Searches) -> pl.DataFrame:
    clicked = pages(searches)
    return _spelt_out(
        clicked["search"].to_numpy(), TextReader().classifier.classify_urls(clicked["url"]).category
    )


def _spelt_out(search: IntArray, node: IntArray) -> pl.DataFrame:
    paths, known = load().paths, node >= 0
    names = [paths[category] for category in node[known].tolist()]
    return pl.DataFrame(
        {"search": search[known], "category": names}, schema={"search": pl.Int64, "category": pl.String}
    )


def _at_level(categories: Bags, tree: Tree, level: int) -> Bags:
    """Return the searches' ancestors at a level; what lies higher has none."""
    size = categories.start.size - 1
    search = np.repeat(np.arange(size), np.diff(categories.start)).astype(np.int64)
    deep = tree.depth[categories.item] >= level
    column = min(level, tree.above.shape[1]) - 1
    return gather(search[deep], tree.above[categories.item[deep], column], size)[0]

"""Query strings and URLs as the arrays that the syntactic distance reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from querycloak.kernels.history_distance import Hosts, Strings
from querycloak.log import IntArray
from querycloak.methods.sharing import labels_of

#: Different words of a query that are compared, the first ones: each is with all others, in all pairs.
MOST: Final = 32


def _edges(sizes: Iterable[int]) -> IntArray:
    return np.cumsum([0, *sizes], dtype=np.int64)


def spell(queries: Sequence[str]) -> Strings:
    """Take distinct query strings apart: words at white space, words into letters."""
    known: dict[str, int] = {}
    split = [query.split() for query in queries]
    distinct = [list(dict.fromkeys(terms))[:MOST] for terms in split]
    words = [[known.setdefault(word, len(known)) for word in some] for some in distinct]
    flat = np.array([word for some in words for word in some], np.int64)
    letters = np.frombuffer("".join(known).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
    terms = np.array([len(terms) for terms in split], np.int64)
    return Strings(_edges(map(len, words)), flat, terms, letters, _edges(map(len, known)))


def name_hosts(urls: Sequence[str]) -> tuple[IntArray, Hosts]:
    """Number the domain names of URLs (-1: it has none) and their labels."""
    names: dict[tuple[str, ...], int] = {}
    labels: dict[str, int] = {}
    found = [labels_of(url) for url in urls]
    numbers = [names.setdefault(host, len(names)) if host else -1 for host in found]
    table = np.full((len(names), max(map(len, names), default=1)), -1, np.int64)
    for row, name in zip(table, names, strict=True):
        row[: len(name)] = [labels.setdefault(label, len(labels)) for label in name]
    return np.array(numbers, np.int64), Hosts(table, np.array([*map(len, names)], np.int64))

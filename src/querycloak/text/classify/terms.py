"""The best categories of one term."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from querycloak.errors import ParameterError
from querycloak.text.classify.lexical import Lexical
from querycloak.text.taxonomy import Taxonomy


@lru_cache(maxsize=4)
def shared(taxonomy: Taxonomy | None = None) -> Lexical:
    """Give the lexical classifier of a taxonomy, made once."""
    return Lexical(taxonomy)


def categories(term: str, n: int, taxonomy: Taxonomy | None = None) -> list[str]:
    """Give the n best category paths of one term, the best first; fewer if there are no more."""
    if n < 1:
        raise ParameterError("`n` must be at least 1")
    classifier = shared(taxonomy)
    best = int(classifier.classify([term]).category[0])
    nodes, scores = classifier.evidence(term)
    distinct, where = np.unique(nodes, return_inverse=True)
    total = np.bincount(where, scores, distinct.size)
    ranked = distinct[np.lexsort((distinct, -total))].tolist()
    ordered = dict.fromkeys([best, *ranked] if best >= 0 else ranked)
    return [classifier.taxonomy.path(node) for node in ordered][:n]

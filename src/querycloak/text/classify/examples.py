"""The lexicon's phrases as examples to learn from: text, topic, domain, weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak.text.classify.index import strongest
from querycloak.text.classify.result import FloatArray, IntArray
from querycloak.text.normalise import normalise
from querycloak.text.taxonomy import Taxonomy


@dataclass(frozen=True)
class Examples:
    """Phrases with the positions of their topic in `topics` and of their domain in `domains`."""

    texts: list[str]
    topic: IntArray
    domain: IntArray
    weight: FloatArray
    topics: IntArray
    domains: IntArray


def examples(taxonomy: Taxonomy) -> Examples:
    """Collect what a person wrote into the lexicon; each phrase counts for its strongest category."""
    own = strongest(taxonomy)
    chosen = np.flatnonzero(own > 0)
    node = own[chosen]
    topics, topic = np.unique(taxonomy.at_level(node, 1), return_inverse=True)
    domains, domain = np.unique(node, return_inverse=True)
    texts = normalise(pl.Series([taxonomy.terms.texts[i] for i in chosen], dtype=pl.String)).to_list()
    weight = np.sqrt(taxonomy.terms.weight[taxonomy.terms.start[chosen]].astype(np.float64))
    return Examples(texts, topic, domain, weight, topics.astype(np.int64), domains.astype(np.int64))

"""A taxonomy of a few made-up entries, so that tests of the classifier do not depend on the shipped one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from querycloak.text.classifier import LexicalClassifier
from querycloak.text.lexicon import Lexicon
from querycloak.text.taxonomy import Taxonomy, build

LEXICON = {
    "Business/Banking": "bank of america*3, mortgage rates, mortgage calculator, credit card*2, loans",
    "Recreation/Travel": "hotels*2, cheap flights*3, vacation packages, beaches",
    "Regional/Cities": "boston, springfield, denver, paris",
    "News/Weather": "weather*3, forecast*2, ten day forecast*3, hurricane",
    "Home/Cooking": "recipes*3, chicken*1, chicken soup*2, banana bread*3, meatloaf",
    "Computers/Email": "hotmail*3, webmail*3, check my email",
    "Sports/Golf": "golf*3, golf clubs*2, putter, tee times",
    "Reference/Phone Directories": "white pages*3, phone book*2",
    "Regional/United States": "texas, montana",
}
DEEP = {"hurricane": "News/Weather/storm/windstorm/cyclone/hurricane", "putter": "Sports/Golf/club/putter"}


def lexicon_of(pairs: Sequence[tuple[str, int, float]]) -> Lexicon:
    """Return curated (text, node, weight) as a lexicon."""
    texts, nodes, weights = zip(*pairs, strict=True) if pairs else ((), (), ())
    curated = np.ones(len(texts), np.bool_)
    return Lexicon.gather(
        texts,
        np.arange(len(texts), dtype=np.int32),
        np.array(nodes, np.int32),
        np.array(weights, np.float32),
        curated,
    )


def small_taxonomy() -> Taxonomy:
    names, parents, nodes = [""], [-1], {"": 0}

    def node(path: str) -> int:
        if path not in nodes:
            above = node(path.rpartition("/")[0])
            nodes[path] = len(names)
            names.append(path.rpartition("/")[2])
            parents.append(above)
        return nodes[path]

    pairs = [
        (term.partition("*")[0].strip(), node(path), float(term.partition("*")[2] or 1))
        for path, terms in LEXICON.items()
        for term in terms.split(",")
    ]
    pairs += [(term, node(path), 1.0) for term, path in DEEP.items()]
    return build(parents, names, lexicon_of(pairs))


@cache
def small_classifier() -> LexicalClassifier:
    return LexicalClassifier(small_taxonomy())

"""What the words inside the lexicon's phrases say when they stand outside them.

The lexicon may know `mortgage calculator` and `mortgage rates` and yet a query says `mortgage payoff`: the
word `mortgage` still points to banking, though less surely than a phrase that a person wrote down.
"""

from __future__ import annotations

import numpy as np

from querycloak.text.classify.result import FloatArray, IntArray
from querycloak.text.normalise import BoolArray, Tokens

WEIGHT = 0.5
LEAST_SHARE = 0.3  # of a word's phrases that must lie in one topic
CAUTION = 0.7  # added to the number of phrases, so that one phrase alone says less


def words_of_phrases(
    tokens: Tokens, stop: BoolArray, domain: IntArray, weight: FloatArray, topic_of: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Give (word, domain, weight) for words of phrases that speak for few topics.

    `domain` holds each phrase's own category or -1; `topic_of` gives each category's topic.
    """
    sizes = np.diff(tokens.bounds)
    phrase = np.repeat(np.arange(sizes.size), sizes)
    used = ~stop[tokens.codes] & (domain[phrase] >= 0)
    word, node, mass = tokens.codes[used], domain[phrase[used]], weight[phrase[used]]
    pairs, where = np.unique(np.stack([word, node]), axis=1, return_inverse=True)
    by_domain = np.bincount(where.ravel(), mass)
    _, at = np.unique(np.stack([pairs[0], topic_of[pairs[1]]]), axis=1, return_inverse=True)
    by_topic = np.bincount(at.ravel(), by_domain)[at.ravel()]
    everything = np.bincount(pairs[0], by_domain)[pairs[0]]
    share = by_topic / (everything + CAUTION)
    strength = WEIGHT * share * by_domain / by_topic
    kept = share >= LEAST_SHARE
    return pairs[0][kept], pairs[1][kept], strength[kept]

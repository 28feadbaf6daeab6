"""Finds the nearest domain by static embeddings, where no phrase is known (extra `embeddings`).

Everything that decides is integer arithmetic: sums of rounded vectors times rounded weights stay far
below 2**53, so the answer to a query cannot depend on what stood beside it in the batch.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from querycloak.text.classify.examples import Examples
from querycloak.text.classify.result import FloatArray, IntArray
from querycloak.text.embeddings import PIECE, STEPS, require, vectors

SHRINK = 0.3  # how much of the common covariance is replaced by its mean
UNSEEN = 1e-4  # least probability of a topic
FINE = 1 << 40  # rounding of probabilities, so that their sums are exact too


class Embedding:
    """A linear discriminant over the domains, learnt from the lexicon's phrases on first use."""

    def __init__(self, examples: Examples) -> None:
        self._examples = examples

    @cached_property
    def _weights(self) -> tuple[FloatArray, FloatArray]:
        """Class means against the common covariance: weights per domain and what is added to them."""
        require("the nearest topic by embedding")
        examples = self._examples
        known = vectors(examples.texts) / STEPS
        size = examples.domains.size
        total = np.bincount(examples.domain, examples.weight, size)
        means = np.zeros((size, known.shape[1]))
        np.add.at(means, examples.domain, known * examples.weight[:, None])
        means /= total[:, None]
        inner = known - means[examples.domain]
        spread = inner.T @ (inner * examples.weight[:, None]) / examples.weight.sum()
        level = np.trace(spread) / spread.shape[0]
        spread = (1 - SHRINK) * spread + SHRINK * level * np.eye(spread.shape[0])
        weights = np.linalg.solve(spread, means.T)
        offset = -0.5 * (means * weights.T).sum(axis=1)
        return np.rint(weights * STEPS), np.rint(offset * STEPS * STEPS)

    def scores(self, texts: pl.Series) -> FloatArray:
        """Give the evidence of texts in plain form for each domain, exactly the same in any batch."""
        weights, offset = self._weights
        words = texts.to_list()
        pieces = [vectors(words[i : i + PIECE]) @ weights + offset for i in range(0, len(words), PIECE)]
        return np.concatenate(pieces) / (STEPS * STEPS) if pieces else np.empty((0, offset.size))

    def evidence(self, texts: pl.Series, topics: IntArray) -> FloatArray:
        """Give logarithms of the topics' probabilities for texts in plain form."""
        examples = self._examples
        scores = self.scores(texts)
        chance = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
        chance = np.rint(chance / chance.sum(axis=1, keepdims=True) * FINE)
        topic_of = np.zeros(examples.domains.size, np.int64)
        topic_of[examples.domain] = np.searchsorted(topics, examples.topics)[examples.topic]
        member = (topic_of[:, None] == np.arange(topics.size)).astype(np.float64)
        return np.asarray(np.log(chance @ member / FINE + UNSEEN), np.float64)

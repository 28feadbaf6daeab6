"""Guesses a topic from words and runs of letters that resemble the lexicon's."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.text.classify import letter_runs as kernel
from querycloak.text.classify.examples import Examples
from querycloak.text.classify.result import FloatArray, IntArray
from querycloak.text.classify.spelling import as_bytes
from querycloak.text.normalise import BoolArray

BUCKETS = 1 << 17
RATES = np.array([2.0, 1.5, 1.0, 0.7, 0.5])  # one round over the lexicon each
UNSEEN = 1e-4  # probability of a topic that the lexicon has no phrase for
SEED = 7  # of the order in which phrases are learnt from; any will do, but always the same


class Letters:
    """Logistic regression on hashed words and runs of letters, learnt from the lexicon on first use."""

    def __init__(self, examples: Examples) -> None:
        self._examples = examples

    @cached_property
    def _table(self) -> npt.NDArray[np.float32]:
        examples = self._examples
        letters, bounds = as_bytes([f" {text} " for text in examples.texts])
        table = np.zeros((BUCKETS, examples.topics.size), np.float32)
        order = np.random.default_rng(SEED).permutation(len(examples.texts))
        kernel.learn(letters, bounds, examples.topic, examples.weight, order, RATES, table)
        return table

    def evidence(self, texts: pl.Series, topics: IntArray) -> tuple[FloatArray, BoolArray]:
        """Give logarithms of the topics' probabilities for texts in plain form, and which could be read."""
        prior = np.full((texts.len(), topics.size), np.log(UNSEEN))
        if not self._examples.texts:
            return prior, np.zeros(texts.len(), np.bool_)
        letters, bounds = as_bytes((" " + texts + " ").to_list())
        chances, counts = kernel.score(letters, bounds, self._table)
        prior[:, np.searchsorted(topics, self._examples.topics)] = chances
        return prior, counts > 0

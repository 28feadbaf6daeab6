"""Which words and phrases speak for which categories, and how strongly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.text.normalise import normalise

IntArray = npt.NDArray[np.int32]
#: Characters of a term that are read.
LONGEST_TERM = 10_000


@dataclass(frozen=True, eq=False)
class Terms:
    """Phrases in alphabetical order; the categories of phrase `i` lie at `start[i]:start[i + 1]`."""

    texts: list[str]
    start: IntArray
    node: IntArray
    weight: npt.NDArray[np.float32]

    @classmethod
    def gather(cls, weights: Mapping[str, Mapping[int, float]]) -> Terms:
        """Build the table from `{phrase: {node: weight}}`; the strongest category comes first."""
        texts = sorted(weights)
        ranked = [sorted(weights[text].items(), key=lambda pair: (-pair[1], pair[0])) for text in texts]
        sizes = [0, *(len(pairs) for pairs in ranked)]
        flat = [pair for pairs in ranked for pair in pairs]
        return cls(
            texts,
            np.cumsum(sizes, dtype=np.int32),
            np.array([node for node, _ in flat], np.int32),
            np.array([weight for _, weight in flat], np.float32),
        )

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[str, int, float]]) -> Terms:
        """Build the table from (text, node, weight); the largest weight of a pair counts."""
        weights: dict[str, dict[int, float]] = {}
        listed = list(pairs)
        phrases = normalise(
            pl.Series([text for text, _, _ in listed], dtype=pl.String), LONGEST_TERM
        ).to_list()
        for phrase, (_, node, weight) in zip(phrases, listed, strict=True):
            if phrase:
                nodes = weights.setdefault(phrase, {})
                nodes[node] = max(weight, nodes.get(node, 0.0))
        return cls.gather(weights)

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def phrases(self) -> dict[str, list[tuple[int, float]]]:
        """Each phrase with its categories and weights, the strongest first."""
        pairs = list(zip(self.node.tolist(), self.weight.tolist(), strict=True))
        bounds = self.start.tolist()
        return {text: pairs[a:b] for text, a, b in zip(self.texts, bounds[:-1], bounds[1:], strict=True)}

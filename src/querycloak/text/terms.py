"""Which words and phrases speak for which categories, and how strongly."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]

_APOSTROPHES = re.compile("['’`]")
_NO_WORD = re.compile(r"[\W_]+")


def normalise(text: str) -> str:
    """Write a phrase as it is looked up: lower case, no accents, words separated by one space.

    >>> normalise("Mother's  Day - café_menu")
    'mothers day cafe menu'
    """
    plain = text.lower() if text.isascii() else _without_accents(text)
    return _NO_WORD.sub(" ", _APOSTROPHES.sub("", plain)).strip()


def _without_accents(text: str) -> str:
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(character for character in apart if not unicodedata.combining(character))


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
        for text, node, weight in pairs:
            if phrase := normalise(text):
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

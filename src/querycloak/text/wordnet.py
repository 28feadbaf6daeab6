"""WordNet's nouns as a graph: a concept can have several parents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property

import numpy as np

from querycloak.errors import UnknownName
from querycloak.text import taxonomy_files as stored
from querycloak.text.lexicon import Int32Array


class RaggedArray:
    """Rows of different lengths in one array: row `i` is `flat[start[i]:start[i + 1]]`."""

    def __init__(self, flat: Int32Array, start: Int32Array) -> None:
        self.flat = flat
        self.start = start

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, row: int) -> Int32Array:
        return self.flat[self.start[row] : self.start[row + 1]]


class WordNet:
    """WordNet 3.0's 82,115 noun synsets: concepts 0, 1, ... with their parents and words.

    Parents are hypernyms and classes of instances. `node[i]` is the place of concept `i` in the tree that
    `load` returns. Concept 0 is the root, `entity`.
    """

    def __init__(self) -> None:
        arrays = {
            name: array.astype(np.int32, copy=False)
            for name, array in stored.shipped().items()
            if name.startswith(("hypernym", "synset", "sense"))
        }
        self.parents, self._lemmas, self._senses = (
            RaggedArray(arrays[name], arrays[f"{name}_start"])
            for name in ("hypernym", "synset_lemma", "sense")
        )
        self.node = arrays["synset_node"]
        self._words = stored.unpack(stored.shipped()["lemma"])

    def main_words(self) -> Iterator[tuple[str, int]]:
        """Yield the words of each concept of which it is the first sense, in the concept's own order."""
        senses = [int(self._senses[word][0]) for word in range(len(self._words))]
        for concept in range(len(self.parents)):
            for word in self._lemmas[concept].tolist():
                if senses[word] == concept:
                    yield self._words[word].replace("_", " "), concept

    def find(self, name: str) -> int:
        """Return the concept of a sense by its WordNet name, such as `dog.n.01`."""
        lemma, _, number = name.rpartition(".n.")
        known = self._word_numbers.get(lemma)
        senses = self._senses[known] if known is not None else ()
        if not number.isdecimal() or not 0 < int(number) <= len(senses):
            raise UnknownName("WordNet has no noun sense of that name", hint="write it like `dog.n.01`")
        return int(senses[int(number) - 1])

    @cached_property
    def _word_numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self._words)}


@cache
def wordnet() -> WordNet:
    """Return the graph, read once per process."""
    return WordNet()

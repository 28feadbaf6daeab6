"""WordNet's nouns as the graph they are: several ways up, all ancestors, lowest common subsumers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from querycloak.errors import UnknownName
from querycloak.text import storage
from querycloak.text.normalise import normalise_text
from querycloak.text.terms import IntArray


class Ragged:
    """Rows of different lengths in one array: row `i` is `flat[start[i]:start[i + 1]]`."""

    def __init__(self, flat: IntArray, start: IntArray) -> None:
        self.flat = flat
        self.start = start

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, row: int) -> IntArray:
        return self.flat[self.start[row] : self.start[row + 1]]


class Graph:
    """Concepts 0, 1, ... with their parents (hypernyms and classes of instances), words and depth.

    `node[i]` is the place of concept `i` in the tree that `load` gives. Concept 0 is the root, `entity`.
    """

    def __init__(
        self, parents: Ragged, lemmas: Ragged, senses: Ragged, words: list[str], node: IntArray
    ) -> None:
        self.parents = parents
        self.node = node
        self._lemmas = lemmas
        self._senses = senses
        self._words = words

    @property
    def size(self) -> int:
        """How many concepts there are."""
        return len(self.parents)

    def lemmas(self, concept: int) -> list[str]:
        """List the words for a concept, the main one first."""
        return [self._words[word].replace("_", " ") for word in self._lemmas[concept]]

    def named(self) -> Iterator[tuple[str, int]]:
        """List the words of each concept for which it is the main sense, in the concept's own order."""
        senses = [int(self._senses[word][0]) for word in range(len(self._words))]
        for concept in range(self.size):
            for word in self._lemmas[concept].tolist():
                if senses[word] == concept:
                    yield self._words[word].replace("_", " "), concept

    def concepts(self, text: str) -> list[int]:
        """List what a word or phrase can mean, in WordNet's order of senses; nothing if it is unknown."""
        return [
            int(c) for word in self._words_by_text.get(normalise_text(text), ()) for c in self._senses[word]
        ]

    def find(self, name: str) -> int:
        """Give the concept of a sense by its WordNet name, such as `dog.n.01`."""
        lemma, _, number = name.rpartition(".n.")
        known = self._words_by_lemma.get(lemma)
        senses = self._senses[known] if known is not None else ()
        if not number.isdecimal() or not 0 < int(number) <= len(senses):
            raise UnknownName("WordNet has no noun sense of that name", hint="write it like `dog.n.01`")
        return int(senses[int(number) - 1])

    def ancestors(self, concept: int) -> set[int]:
        """Give all that lies above a concept on any way up, the concept itself and the root included."""
        found, waiting = {concept}, [concept]
        while waiting:
            above = set(self.parents[waiting.pop()].tolist()) - found
            found |= above
            waiting.extend(above)
        return found

    def common_subsumer(self, concepts: Sequence[int]) -> int:
        """Give the deepest concept that holds all of these; of several, the first by number."""
        shared = set.intersection(*(self.ancestors(concept) for concept in concepts))
        return min(shared, key=lambda concept: (-int(self.depth[concept]), concept))

    @cached_property
    def depth(self) -> IntArray:
        """Steps from the root to each concept on the longest way (the root has 0)."""
        depth = np.zeros(self.size, np.int32)
        child = np.repeat(np.arange(self.size), np.diff(self.parents.start))
        while True:
            deeper = depth.copy()
            np.maximum.at(deeper, child, depth[self.parents.flat] + 1)
            if np.array_equal(deeper, depth):
                return depth
            depth = deeper

    @cached_property
    def _words_by_lemma(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self._words)}

    @cached_property
    def _words_by_text(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, word in enumerate(self._words):
            found.setdefault(normalise_text(word), []).append(number)
        return found


@cache
def wordnet_graph() -> Graph:
    """Load the graph of WordNet 3.0's 82,115 noun synsets from the shipped file, once per process."""
    arrays = storage.shipped()

    def ragged(name: str) -> Ragged:
        return Ragged(_ints(arrays[name]), _ints(arrays[f"{name}_start"]))

    words = storage.unpack(arrays["lemma"])
    return Graph(
        ragged("hypernym"), ragged("synset_lemma"), ragged("sense"), words, _ints(arrays["synset_node"])
    )


def _ints(array: npt.NDArray[np.generic]) -> IntArray:
    return array.astype(np.int32, copy=False)

"""`Concepts`: a taxonomy's concepts, the words that mean them, and those by which each can be said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, wraps
from pathlib import Path
from threading import RLock
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np
import polars as pl

from querycloak.text.concepts import ancestry
from querycloak.text.graph import Ragged, wordnet_graph
from querycloak.text.loaders import load_taxonomy
from querycloak.text.normalise import FUNCTION_WORDS, normalise, normalise_text, stemmer
from querycloak.text.taxonomy import Taxonomy, load
from querycloak.text.terms import IntArray

_lock = RLock()
P = ParamSpec("P")
T = TypeVar("T")


class Placed(NamedTuple):
    """A tree of categories, and the node that each concept belongs to."""

    tree: Taxonomy
    node: IntArray


def once(make: Callable[P, T]) -> Callable[P, T]:
    """Keep what a function gives, and let no two threads work it out at the same time."""
    kept = cache(make)

    @wraps(make)
    def ask(*args: P.args, **kwargs: P.kwargs) -> T:
        with _lock:
            return kept(*args, **kwargs)  # type: ignore[arg-type]

    return ask


_SPEAKS = 1.0  # how strongly a phrase must speak for a category of a table to mean it


class Concepts:
    """Concepts 0, 1, ... with their parents, their words, and the category path that each belongs to.

    A phrase means one concept: `meaning` knows it as it is spelt, `stems` by the stems of its words. A
    concept is said by the first of its phrases that means it and nothing else; one that has none is
    never said, since a reader would take it for another.
    """

    placed: Placed

    def __init__(
        self,
        parents: Ragged,
        phrases: Sequence[tuple[str, int]],
        category: Sequence[str],
        senses: Callable[[str], int] | None = None,
    ) -> None:
        self.parents = parents
        self.category = category
        self._senses = senses  # finds a concept by a name that is neither phrase nor path
        texts = normalise(pl.Series([text for text, _ in phrases], dtype=pl.String)).to_list()
        phrases = list(zip(texts, (concept for _, concept in phrases), strict=True))
        self.meaning: dict[str, int] = {}
        for text, concept in phrases:
            if len(text) > 1:
                self.meaning.setdefault(text, concept)
        self.spoken = self._spoken(phrases)
        self.meaning = {text: concept for text, concept in self.meaning.items() if self.spoken[concept]}
        self.__dict__.pop("idioms", None)  # some phrases have gone; it may not have been asked for yet

    @property
    def size(self) -> int:
        """How many concepts there are."""
        return len(self.parents)

    def _spoken(self, phrases: Sequence[tuple[str, int]]) -> list[str]:
        spoken = [""] * len(self.parents)
        for text, concept in phrases:
            if not spoken[concept] and self.meaning.get(text) == concept and self._is_one_phrase(text):
                spoken[concept] = text
        return spoken

    def _is_one_phrase(self, text: str) -> bool:
        """Say whether a phrase, met alone, is read as one."""
        words = text.split(" ")
        return _stands_alone(text) and (len(words) < 3 or self.split(words) == [(0, len(words))])

    def split(self, words: list[str]) -> list[tuple[int, int]]:
        """Cut at stop words, except inside phrases that are known with them, as `bill of rights`."""
        spans, start, place = [], 0, 0
        while place < len(words):
            idiom = self._idiom(words, place) if words[place] in self.idioms else 0
            if idiom or words[place] in FUNCTION_WORDS:
                spans.append((start, place))
                start = place + (idiom or 1)
                if idiom:
                    spans.append((place, start))
            place = max(place + 1, start)
        spans.append((start, len(words)))
        return [(first, last) for first, last in spans if first < last]

    def _idiom(self, words: list[str], place: int) -> int:
        for length in self.idioms[words[place]]:
            end = place + length
            if end <= len(words) and " ".join(words[place:end]) in self.meaning:
                return length
        return 0

    @cached_property
    def stems(self) -> dict[str, str]:
        """The known phrases by their stems; of several with the same stems, the shortest counts."""
        texts = sorted(self.meaning, key=lambda text: (len(text), text))
        words = sorted({word for text in texts for word in text.split(" ")})
        stem = dict(zip(words, stemmer().stemWords(words), strict=True))
        found: dict[str, str] = {}
        for text in texts:
            found.setdefault(" ".join(stem[word] for word in text.split(" ")), text)
        return found

    @cached_property
    def idioms(self) -> dict[str, list[int]]:
        """By first word: how many words the phrases have that hold `of`, `the` and the like inside."""
        found: dict[str, set[int]] = {}
        for text in self.meaning:
            words = text.split(" ")
            if len(words) > 2 and not FUNCTION_WORDS.isdisjoint(words[1:-1]) and _stands_alone(text):
                found.setdefault(words[0], set()).add(len(words))
        return {first: sorted(lengths, reverse=True) for first, lengths in found.items()}

    def categories(self, phrase: str, most: int) -> list[int]:
        """Give the nodes of the first categories that a known phrase speaks for, the strongest first."""
        ranked = self.placed.tree.terms.phrases.get(phrase)
        if ranked is None:  # spelt in another way there
            return [int(self.placed.node[self.meaning[phrase]])]
        return [node for node, _ in ranked[:most]]

    @cached_property
    def ancestors(self) -> Ragged:
        """All that lies at and above each concept, on any way up."""
        flat, start = ancestry.ancestors(self.parents.flat, self.parents.start)
        return Ragged(flat, start.astype(np.int32))

    def find(self, name: str) -> int:
        """Give the concept of a name: a WordNet sense such as `dog.n.01`, a category path, or a phrase."""
        if self._senses is not None and ".n." in name:
            return self._senses(name)
        if self._senses is None and name in self._paths:
            return self._paths[name]
        return self.meaning.get(normalise_text(name), -1)

    @cached_property
    def _paths(self) -> dict[str, int]:
        return {path: concept for concept, path in enumerate(self.category)}

    @cached_property
    def sayable(self) -> IntArray:
        """The concepts that can be said."""
        return np.flatnonzero(np.array([bool(text) for text in self.spoken])).astype(np.int32)


def _stands_alone(text: str) -> bool:
    """Say whether a phrase neither begins nor ends with a stop word."""
    words = text.split(" ")
    return len(text) > 1 and words[0] not in FUNCTION_WORDS and words[-1] not in FUNCTION_WORDS


@once
def wordnet_concepts() -> Concepts:
    """WordNet's nouns. A phrase means the first of its senses, as WordNet orders them: the commonest."""
    graph, tree = wordnet_graph(), load()
    paths = [tree.paths[node] for node in graph.node.tolist()]
    found = Concepts(graph.parents, list(graph.named()), paths, graph.find)
    found.placed = Placed(tree, graph.node)
    return found


def concepts_of(taxonomy: str | Path | None = None) -> Concepts:
    """Give the concepts of a taxonomy file, or WordNet's."""
    if not taxonomy:
        return wordnet_concepts()
    place = Path(taxonomy).resolve()
    return _of_file(str(place), place.stat().st_mtime_ns if place.exists() else 0)


@once
def _of_file(path: str, changed: int) -> Concepts:
    """Read a file once, and again when it has changed."""
    return of_tree(load_taxonomy(path))


def of_tree(tree: Taxonomy) -> Concepts:
    """Take the categories of a tree as concepts; they are said by their names, or else by their terms."""
    flat = tree.parent[1:].astype(np.int32)
    start = np.concatenate([[0], np.arange(tree.size)]).astype(np.int32)
    found = Concepts(Ragged(flat, start), list(_phrases(tree)), tree.paths)
    found.placed = Placed(tree, np.arange(tree.size, dtype=np.int32))
    return found


def _phrases(tree: Taxonomy) -> Iterator[tuple[str, int]]:
    """List what the categories are called, then the terms that speak for them as strongly as a name."""
    for node in range(1, tree.size):
        yield tree.names[node], node
    for text, ranked in tree.terms.phrases.items():
        yield from ((text, node) for node, weight in ranked if weight >= _SPEAKS)

"""Concepts of queries: which phrase means which concept, and queries rewritten with other concepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, wraps
from itertools import pairwise
from pathlib import Path
from threading import RLock
from typing import Final, ParamSpec, TypeVar

import numpy as np
import polars as pl

from querycloak.text import _ancestry
from querycloak.text.lexicon import Int32Array, PhraseSet
from querycloak.text.normalise import (
    FUNCTION_WORDS,
    STOP_WORDS,
    IntArray,
    Tokens,
    normalise,
    normalise_text,
    stemmer,
    tokens_of,
)
from querycloak.text.noun_phrases import noun_phrases
from querycloak.text.taxonomy import Taxonomy, load, load_taxonomy
from querycloak.text.wordnet import RaggedArray, wordnet

_ADDRESS: Final = r"(?i)(?:^|\s)(?:https?:|www[. ])|[\w-]\.(?:com|net|org|edu|gov|info|biz|co|us|uk|de|tv)\b"
_SEPARATORS: Final = r"[,;|\n]+"
_SIBILANT = re.compile(r"(?:s|x|z|ch|sh)$")
_AFTER_CONSONANT = re.compile(r"[^aeiou]y$")
#: Weight from which a term of a table means its category.
_MEANS: Final = 1.0
_lock = RLock()
P = ParamSpec("P")
T = TypeVar("T")


def locked_cache(maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keep the last results of a function; no two threads compute one at the same time."""

    def wrap(make: Callable[P, T]) -> Callable[P, T]:
        kept = lru_cache(maxsize=maxsize)(make)

        @wraps(make)
        def get(*args: P.args, **kwargs: P.kwargs) -> T:
            with _lock:
                return kept(*args, **kwargs)  # type: ignore[arg-type]

        return get

    return wrap


class ConceptLexicon:
    """Concepts 0, 1, ... with their parents, phrases, and the node of the tree to which each belongs.

    `concept_of` maps a phrase to its one concept. A concept's label is its first unambiguous phrase. A
    concept without one is never released: readers would mistake it for another.
    """

    def __init__(
        self,
        parents: RaggedArray,
        phrases: Sequence[tuple[str, int]],
        tree: Taxonomy,
        node: Int32Array,
        find_sense: Callable[[str], int] | None = None,
    ) -> None:
        self.parents, self.tree, self.node = parents, tree, node
        self._find_sense = find_sense  # finds a concept by a name that is neither phrase nor path
        texts = normalise(pl.Series([text for text, _ in phrases], dtype=pl.String)).to_list()
        listed = list(zip(texts, (concept for _, concept in phrases), strict=True))
        meanings: dict[str, int] = {}
        for text, concept in listed:
            if len(text) > 1:
                meanings.setdefault(text, concept)
        self.label = _labels(listed, meanings, len(parents))
        self.concept_of = {text: concept for text, concept in meanings.items() if self.label[concept]}
        self.idioms = _idioms(self.concept_of)

    @property
    def size(self) -> int:
        """Number of concepts."""
        return len(self.parents)

    @cached_property
    def category(self) -> list[str]:
        """The category path of each concept."""
        return [self.tree.paths[node] for node in self.node.tolist()]

    @cached_property
    def stems(self) -> dict[str, str]:
        """The known phrases by their stems; of several with the same stems, the shortest."""
        texts = sorted(self.concept_of, key=lambda text: (len(text), text))
        words = sorted({word for text in texts for word in text.split(" ")})
        stem = dict(zip(words, stemmer().stemWords(words), strict=True))
        found: dict[str, str] = {}
        for text in texts:
            found.setdefault(" ".join(stem[word] for word in text.split(" ")), text)
        return found

    def categories(self, phrase: str, most: int) -> list[int]:
        """Return the first categories of a known phrase, the strongest first."""
        ranked = self.tree.lexicon.categories(phrase)
        if not ranked:  # the lexicon spells it in another way
            return [int(self.node[self.concept_of[phrase]])]
        return [node for node, _ in ranked[:most]]

    @cached_property
    def ancestors(self) -> RaggedArray:
        """All concepts at and above each concept."""
        flat, start = _ancestry.ancestors(self.parents.flat, self.parents.start)
        return RaggedArray(flat, start.astype(np.int32))

    def find(self, name: str) -> int:
        """Return the concept of a WordNet sense (`dog.n.01`), a category path, or a phrase; -1 if unknown."""
        if self._find_sense is not None and ".n." in name:
            return self._find_sense(name)
        if self._find_sense is None and name in self.tree:
            return self.tree.node(name)
        return self.concept_of.get(normalise_text(name), -1)

    @cached_property
    def labelled(self) -> Int32Array:
        """The concepts that have a label."""
        return np.flatnonzero(np.array([bool(text) for text in self.label])).astype(np.int32)


def _labels(phrases: Sequence[tuple[str, int]], meanings: dict[str, int], size: int) -> list[str]:
    """Return the first phrase of each concept that means it and, met alone, is read as one."""
    possible = [
        (text, concept)
        for text, concept in phrases
        if meanings.get(text) == concept and _stands_alone(text.split(" "))
    ]
    tokens = tokens_of(pl.Series([text for text, _ in possible], dtype=pl.String))
    first, end = _split(tokens, _idioms(meanings))
    text = tokens.text_of(first)
    labels = [""] * size
    for number in text[(first == tokens.bounds[text]) & (end == tokens.bounds[text + 1])].tolist():
        name, concept = possible[number]
        labels[concept] = labels[concept] or name
    return labels


def _stands_alone(words: Sequence[str]) -> bool:
    """Check whether a phrase neither begins nor ends with a stop word."""
    return words[0] not in FUNCTION_WORDS and words[-1] not in FUNCTION_WORDS


def _idioms(meanings: Iterable[str]) -> PhraseSet:
    """Return the phrases with `of`, `the` and the like inside, and those of their first word and length."""
    texts = [(text, text.split(" ")) for text in meanings]
    shapes = {
        (words[0], len(words))
        for _, words in texts
        if len(words) > 2 and not FUNCTION_WORDS.isdisjoint(words[1:-1]) and _stands_alone(words)
    }
    return PhraseSet(text for text, words in texts if (words[0], len(words)) in shapes)


def _split(tokens: Tokens, idioms: PhraseSet) -> tuple[IntArray, IntArray]:
    """Return the spans between stop words; known phrases with stop words (`bill of rights`) stay whole."""
    size = tokens.codes.size
    separates = pl.Series(tokens.words, dtype=pl.String).is_in(["", *FUNCTION_WORDS]).to_numpy()
    first, end, _ = idioms.spans(tokens)
    within = np.zeros(size + 1, np.int64)
    within[first] += 1
    within[end] -= 1
    kept = (np.cumsum(within)[:size] > 0) | ~separates[tokens.codes]
    opens = np.zeros(size + 1, np.bool_)
    opens[np.concatenate([tokens.bounds, first, end])] = True
    opens[1:] |= ~kept
    starts = np.flatnonzero(opens[:size] & kept)
    ends = np.flatnonzero(kept & (opens[1:] | ~np.append(kept[1:], False))) + 1
    return starts, ends


def concept_lexicon(taxonomy: str | Path | None = None) -> ConceptLexicon:
    """Return the concepts of a taxonomy file, or WordNet's."""
    if not taxonomy:
        return _of_wordnet()
    place = Path(taxonomy).resolve()
    return _of_file(str(place), place.stat().st_mtime_ns if place.exists() else 0)


@locked_cache(maxsize=1)
def _of_wordnet() -> ConceptLexicon:
    """Return WordNet's nouns. A phrase means its first sense, which is the commonest."""
    graph = wordnet()
    return ConceptLexicon(graph.parents, list(graph.main_words()), load(), graph.node, graph.find)


@locked_cache(maxsize=2)
def _of_file(path: str, changed: int) -> ConceptLexicon:
    """Read a file once, and again when it has changed."""
    return of_tree(load_taxonomy(path))


def of_tree(tree: Taxonomy) -> ConceptLexicon:
    """Return the categories of a tree as concepts; labels are their names, or else their terms."""
    flat = tree.parent[1:].astype(np.int32)
    start = np.concatenate([[0], np.arange(tree.size)]).astype(np.int32)
    names = [(tree.names[node], node) for node in range(1, tree.size)]
    return ConceptLexicon(
        RaggedArray(flat, start), [*names, *_terms(tree)], tree, np.arange(tree.size, dtype=np.int32)
    )


def _terms(tree: Taxonomy) -> list[tuple[str, int]]:
    strong = np.flatnonzero(tree.lexicon.weight >= _MEANS)
    phrase, node = tree.lexicon.phrase[strong].tolist(), tree.lexicon.node[strong].tolist()
    return [(tree.lexicon.texts[p], n) for p, n in zip(phrase, node, strict=True)]


@dataclass(frozen=True)
class Phrase:
    """A phrase of a query that means a concept, and the words that the mapping left out."""

    concept: int
    before: tuple[str, ...] = ()  # words between it and the phrase before
    removed: tuple[str, ...] = ()  # its own first words, which no known phrase has
    plural: bool = False
    lexicon_phrase: str = ""  # the known phrase


@dataclass(frozen=True)
class ConceptSpans:
    """The phrases of many texts in one row: those of text i are `phrases[start[i]:start[i + 1]]`."""

    phrases: list[Phrase]
    start: IntArray

    @property
    def concept(self) -> IntArray:
        """The concept of each phrase."""
        return np.fromiter((phrase.concept for phrase in self.phrases), np.int64, len(self.phrases))


class ConceptMapper:
    """Splits queries into phrases and finds the concept of each.

    A phrase is looked up as it is spelt, then by its stems, then without its first word, and so on. A URL
    means nothing, nor does a phrase of which no part is known.
    """

    def __init__(self, lexicon: ConceptLexicon, phrases: str = "lexical") -> None:
        self._lexicon = lexicon
        self._lexical = phrases == "lexical"

    def read(self, queries: pl.Series) -> ConceptSpans:
        """Return the concepts of queries; each distinct one should be given once."""
        parts = queries.fill_null("").str.replace_all(_SEPARATORS, ",").str.split(",")
        flat = parts.explode().fill_null("")
        flat = flat.set(flat.str.contains(_ADDRESS), "")
        tokens = tokens_of(normalise(flat))
        first, end = _split(tokens, self._lexicon.idioms) if self._lexical else _parsed(flat, tokens)
        part = tokens.text_of(first)
        last = np.maximum(tokens.bounds[part], np.concatenate([[0], end])[:-1])  # end of the span before
        query = np.repeat(np.arange(queries.len()), parts.list.len().to_numpy())[part]
        words = [tokens.words[code] for code in tokens.codes.tolist()]
        phrases: list[Phrase] = []
        counts = np.zeros(queries.len() + 1, np.int64)
        look_up = cache(self._look_up)
        for owner, before, start, stop in np.stack([query, last, first, end], axis=1).tolist():
            text, removed, plural = look_up(tuple(words[start:stop]))
            if text:
                between, without = tuple(words[before:start]), tuple(words[start : start + removed])
                phrases.append(Phrase(self._lexicon.concept_of[text], between, without, plural, text))
                counts[owner + 1] += 1
        return ConceptSpans(phrases, np.cumsum(counts))

    def _look_up(self, words: tuple[str, ...]) -> tuple[str, int, bool]:
        """Return the known phrase in a phrase, how many words before it are left out, and if it is a plural.

        Without a parser, also without the last words: a list often ends in an unknown name, as in
        `siding new haddonburg`.
        """
        lexicon, stems = self._lexicon, stemmer().stemWords(words)
        for end in range(len(words), 0, -1) if self._lexical else [len(words)]:
            if end < len(words) and words[end - 1] in STOP_WORDS:
                continue  # `free` means nothing alone
            for removed in range(end):
                text = " ".join(words[removed:end])
                if text in lexicon.concept_of:
                    return text, removed, False
                text = lexicon.stems.get(" ".join(stems[removed:end]), "")
                if text and len(words[end - 1]) > 1:
                    return text, removed, words[end - 1].endswith("s")
        return "", 0, False


def _parsed(texts: pl.Series, tokens: Tokens) -> tuple[IntArray, IntArray]:
    """Return where the parser's noun phrases are among the words."""
    spans: list[tuple[int, int]] = []
    words = [tokens.words[code] for code in tokens.codes.tolist()]
    bounds = pairwise(tokens.bounds.tolist())
    for phrases, (low, high) in zip(noun_phrases(texts.to_list()), bounds, strict=True):
        place = low
        for phrase in phrases:
            wanted = phrase.split(" ")
            starts = range(place, high - len(wanted) + 1)
            start = next((s for s in starts if words[s : s + len(wanted)] == wanted), None)
            if start is not None:  # the parser cuts `bob's` in two
                place = start + len(wanted)
                spans.append((start, place))
    found = np.array(spans, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def rewrite_query(phrases: Sequence[Phrase], labels: Sequence[str], how: str) -> str:
    """Return a query with other concepts' labels in place of its phrases.

    `none`: the labels alone. `form`: also its plurals and the stop words between them. `paper`: also all
    words that the mapping left out.
    """
    if how == "none":
        return ", ".join(labels)
    text: list[str] = []
    for phrase, words in zip(phrases, labels, strict=True):
        before = [word for word in phrase.before if how == "paper" or word in FUNCTION_WORDS]
        if text and not before:
            text[-1] += ","
        removed = phrase.removed if how == "paper" else ()
        text += [*before, *removed, pluralised(words) if phrase.plural else words]
    return " ".join(text)


def pluralised(text: str) -> str:
    """Return the plural of a phrase by its last word, as English usually forms it.

    >>> pluralised("huawei tablet"), pluralised("city"), pluralised("watch"), pluralised("glasses")
    ('huawei tablets', 'cities', 'watches', 'glasses')
    """
    if text.endswith("s") and not text.endswith("ss"):
        return text
    if _AFTER_CONSONANT.search(text):
        return text[:-1] + "ies"
    return text + ("es" if _SIBILANT.search(text) else "s")

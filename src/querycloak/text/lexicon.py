"""The lexicon of a taxonomy: phrases with categories, weights and provenance, prepared for lookup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.kernels.hash_table import PairTable
from querycloak.text import _phrases as kernel
from querycloak.text.normalise import (
    STOP_WORDS,
    BoolArray,
    IntArray,
    Tokens,
    is_stop,
    normalise,
    stemmer,
    tokens_of,
)

if TYPE_CHECKING:
    from querycloak.text.taxonomy import Taxonomy

Int32Array = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]
UNKNOWN = -1

#: Characters of a term that are read.
LONGEST_TERM = 10_000
WORDNET = 0.3  # weight of a WordNet lemma relative to a curated term
BESIDE_CURATED = 0.15  # ... and where the same phrase has a curated category
AMBIGUOUS = 0.5  # a phrase of many meanings counts less for each: weight x (weight / sum) ** this
BY_TOPIC = {
    "Regional": 0.5,  # a place is where, not what: `hotels in boston` is about travel
    "Adult": 1.5,  # the other way round: an adult word makes the whole query so
}
STEMMED = 0.85  # a match by stems only
WITHOUT_STOP_WORDS = 0.9  # `bank america` for `bank of america`
LEFT_ALONE = 0.4  # `sale` for `for sale`
JOINED = 0.95  # `bankofamerica`
CURATED_WORD = 5.0  # how much commoner a curated phrase makes its words than one of WordNet
BACKOFF = 0.5  # weight of a word of a phrase outside the phrase
LEAST_SHARE = 0.3  # of a word's phrases that must be in one topic
CAUTION = 0.7  # added to the number of phrases, so that one phrase alone counts less


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Phrases in alphabetical order; the categories of phrase `i` are at `start[i]:start[i + 1]`.

    `curated` marks entries that a person chose, as opposed to those of WordNet or of pages' texts.
    """

    texts: list[str]
    start: Int32Array
    node: Int32Array
    weight: npt.NDArray[np.float32]
    curated: BoolArray

    @classmethod
    def gather(
        cls,
        texts: Sequence[str],
        text: Int32Array,
        node: Int32Array,
        weight: npt.NDArray[np.float32],
        curated: BoolArray,
    ) -> Lexicon:
        """Build the table from entries; of equal entries the largest weight counts."""
        normal = normalise(pl.Series(texts, dtype=pl.String), LONGEST_TERM)
        phrases = normal.filter(normal != "").unique().sort()
        numbers = pl.DataFrame({"text": phrases, "number": np.arange(phrases.len(), dtype=np.int32)})
        joined = normal.to_frame("text").join(numbers, on="text", how="left", maintain_order="left")
        phrase = joined["number"].fill_null(-1).to_numpy()[text] if len(texts) else text
        order = np.lexsort((-weight, node, phrase))
        order = order[phrase[order] >= 0]
        phrase, node, weight, curated = phrase[order], node[order], weight[order], curated[order]
        first = np.flatnonzero((np.diff(phrase, prepend=-1) != 0) | (np.diff(node, prepend=-1) != 0))
        curated = np.logical_or.reduceat(curated, first) if first.size else curated
        phrase, node, weight = phrase[first], node[first], weight[first]
        order = np.lexsort((node, -weight, phrase))
        start = np.searchsorted(phrase, np.arange(phrases.len() + 1)).astype(np.int32)
        return cls(phrases.to_list(), start, node[order], weight[order], curated[order])

    def __len__(self) -> int:
        return len(self.texts)

    def categories(self, phrase: str) -> list[tuple[int, float]]:
        """Return the categories of a phrase with their weights, the strongest first."""
        place = self._place.get(phrase)
        if place is None:
            return []
        here = slice(self.start[place], self.start[place + 1])
        return list(zip(self.node[here].tolist(), self.weight[here].tolist(), strict=True))

    @cached_property
    def _place(self) -> dict[str, int]:
        return {text: place for place, text in enumerate(self.texts)}

    @cached_property
    def phrase(self) -> IntArray:
        """The phrase of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.start)).astype(np.int64)

    @cached_property
    def curated_category(self) -> IntArray:
        """The strongest curated category of each phrase, -1 where there is none."""
        chosen = np.flatnonzero(self.curated)
        weakest_first = chosen[np.lexsort((-self.node[chosen], self.weight[chosen]))]
        own = np.full(len(self), UNKNOWN, np.int64)
        own[self.phrase[weakest_first]] = self.node[weakest_first]
        return own


class PhraseSet:
    """Phrases in normal form, found in whole columns of texts by the classifier's trie."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self.phrases = sorted({*phrases})
        tokens = tokens_of(pl.Series(self.phrases, dtype=pl.String))
        self._numbers = {word: number for number, word in enumerate(tokens.words)}
        self._table = PairTable()
        self._table.reserve(tokens.codes.size)
        ends, states = kernel.grow(tokens.codes, tokens.bounds, kernel.SPELT, 1, self._table.arrays)
        self._phrase = np.full(states, UNKNOWN, np.int64)
        self._phrase[ends] = np.arange(ends.size)

    def spans(self, texts: Tokens, *, longest: bool = True) -> tuple[IntArray, ...]:
        """Return first word, end and number of the phrases from left to right, the longest first.

        They do not overlap; if not `longest`, also those inside and across others are returned.
        """
        numbers = np.array([self._numbers.get(word, UNKNOWN) for word in texts.words], np.int64)
        asked = numbers[texts.codes], texts.bounds, self._table.arrays, self._phrase, longest
        found = np.empty((kernel.spans(*asked, np.empty((0, 3), np.int64)), 3), np.int64)
        kernel.spans(*asked, found)
        return tuple(found.T)

    def texts_with(self, texts: Tokens) -> IntArray:
        """Return the numbers of texts that contain a phrase, one for each phrase."""
        return texts.text_of(self.spans(texts)[0])

    def names_in(self, texts: Tokens, *, longest: bool = True) -> list[list[str]]:
        """Return the phrases of each text, see `spans`."""
        first, _, phrase = self.spans(texts, longest=longest)
        names: list[list[str]] = [[] for _ in texts.bounds[1:]]
        for text, number in zip(texts.text_of(first).tolist(), phrase.tolist(), strict=True):
            names[text].append(self.phrases[number])
        return names


class Vocabulary:
    """Numbers of words and of stems; a word of no phrase has no number."""

    def __init__(self, words: Sequence[str], commonness: FloatArray, written: int | None = None) -> None:
        self.words = words
        self.written = len(words) if written is None else written  # from here on, joined phrases
        self.commonness = commonness
        self._number = {word: i for i, word in enumerate(words)}
        stems = stemmer().stemWords(words)
        self._stem_number = {stem: i for i, stem in enumerate(dict.fromkeys(stems))}
        self.stem = np.array([self._stem_number[stem] for stem in stems], np.int64)

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def stop(self) -> BoolArray:
        """Mark words that state nothing on their own."""
        return is_stop(self.words)

    def spelt(self, words: Sequence[str]) -> IntArray:
        """Return the numbers of words, -1 for unknown ones."""
        return np.array([self._number.get(word, UNKNOWN) for word in words], np.int64)

    def stemmed(self, words: Sequence[str]) -> IntArray:
        """Return the numbers of the words' stems, -1 for unknown ones."""
        spelt = self.spelt(words)
        answer = np.full(len(words), UNKNOWN, np.int64)
        answer[spelt >= 0] = self.stem[spelt[spelt >= 0]]
        strange = np.flatnonzero(spelt < 0)
        stems = stemmer().stemWords([words[i] for i in strange.tolist()])
        answer[strange] = [self._stem_number.get(stem, UNKNOWN) for stem in stems]
        return answer


@dataclass(frozen=True)
class SurfaceForms:
    """Ways to write phrases: word numbers in one row, the phrase of each, and a factor of its weight."""

    words: IntArray
    bounds: IntArray
    phrase: IntArray
    factor: FloatArray

    @classmethod
    def single_words(cls, words: IntArray, phrase: IntArray) -> SurfaceForms:
        """Return single words as forms of phrases."""
        return cls(words, np.arange(words.size + 1), phrase, np.ones(words.size))

    @classmethod
    def concat(cls, *forms: SurfaceForms) -> SurfaceForms:
        """Return several lists of forms as one."""
        return cls(
            np.concatenate([each.words for each in forms]),
            _bounds(np.concatenate([np.diff(each.bounds) for each in forms])),
            np.concatenate([each.phrase for each in forms]),
            np.concatenate([each.factor for each in forms]),
        )


def _bounds(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def surface_forms(
    texts: pl.Series, phrases: Tokens, stop: BoolArray, curated: BoolArray
) -> tuple[Vocabulary, SurfaceForms]:
    """Number all words and list all ways to write each phrase: as spelt, without stop words, joined."""
    which, joined = _joined(texts, np.flatnonzero(curated))
    vocabulary, numbers = _vocabulary(phrases, joined, curated)
    run_on = replace(SurfaceForms.single_words(numbers, which), factor=np.full(numbers.size, JOINED))
    spelt = _as_spelt(phrases, ~_silent(phrases, stop, curated))
    return vocabulary, SurfaceForms.concat(spelt, _without_stop_words(phrases, stop, curated), run_on)


def _as_spelt(tokens: Tokens, chosen: BoolArray) -> SurfaceForms:
    sizes = np.diff(tokens.bounds)
    phrase = np.flatnonzero(chosen)
    return SurfaceForms(
        tokens.codes[np.repeat(chosen, sizes)], _bounds(sizes[chosen]), phrase, np.ones(phrase.size)
    )


def _without_stop_words(tokens: Tokens, stop: BoolArray, curated: BoolArray) -> SurfaceForms:
    """Return phrases with stop words again without them; a word that is left alone must be curated."""
    content = ~stop[tokens.codes]
    kept = np.add.reduceat(content.astype(np.int64), tokens.bounds[:-1])
    changed = (kept > 1 - curated) & (kept > 0) & (kept < np.diff(tokens.bounds))
    words = tokens.codes[content & np.repeat(changed, np.diff(tokens.bounds))]
    sizes = kept[changed]
    factor = np.where(sizes > 1, WITHOUT_STOP_WORDS, LEFT_ALONE)
    return SurfaceForms(words, _bounds(sizes), np.flatnonzero(changed), factor)


def _joined(texts: pl.Series, curated: IntArray) -> tuple[IntArray, pl.Series]:
    """Return the curated phrases of several words written as one, as in addresses."""
    several = texts[curated].str.contains(" ").to_numpy()
    joined = texts[curated[several]].str.replace_all(" ", "", literal=True)
    long = (joined.str.len_chars() >= 6).to_numpy()
    return curated[several][long], joined.filter(pl.Series(long))


def _silent(phrases: Tokens, stop: BoolArray, curated: BoolArray) -> BoolArray:
    """Mark phrases of stop words only; curated ones can be numbers (`1099`) and whole idioms."""
    empty = np.array([word in STOP_WORDS or not word for word in phrases.words], np.bool_)
    single = np.diff(phrases.bounds) == 1
    content = np.add.reduceat((~stop[phrases.codes]).astype(np.int64), phrases.bounds[:-1])
    alone = single & empty[phrases.codes[phrases.bounds[:-1]]]
    return np.asarray(alone | ((content == 0) & ~curated), np.bool_)


def _vocabulary(phrases: Tokens, joined: pl.Series, curated: BoolArray) -> tuple[Vocabulary, IntArray]:
    """Number the words of phrases, then the joined forms; a word of a curated phrase counts as common."""
    weight = np.repeat(np.where(curated, CURATED_WORD, 1.0), np.diff(phrases.bounds))
    common = np.bincount(phrases.codes, weight, len(phrases.words))
    known = {word: i for i, word in enumerate(phrases.words)}
    numbers = [known.setdefault(word, len(known)) for word in joined.to_list()]
    commonness = np.concatenate([common, np.full(len(known) - common.size, CURATED_WORD)])
    return Vocabulary(list(known), commonness, written=common.size), np.array(numbers, np.int64)


@dataclass(frozen=True)
class _Entries:
    """Categories of phrases: phrase number, node, weight."""

    phrase: IntArray
    node: IntArray
    weight: FloatArray

    def __add__(self, later: _Entries) -> _Entries:
        pairs = zip(vars(self).values(), vars(later).values(), strict=True)
        return _Entries(*(np.concatenate(pair) for pair in pairs))


class PhraseIndex:
    """The phrases of a taxonomy as arrays for the kernel: a trie of words, and the categories of its ends."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        own = taxonomy.lexicon.curated_category
        texts = pl.Series(taxonomy.lexicon.texts, dtype=pl.String)
        phrases = tokens_of(texts)
        stop = is_stop(phrases.words)
        self.vocabulary, forms = surface_forms(texts, phrases, stop, own >= 0)
        words, more = _word_weights(taxonomy, phrases, stop, own)  # their phrases come after all others
        self.arrays = self._build(SurfaceForms.concat(forms, words), _weigh(taxonomy) + more)

    def _build(self, forms: SurfaceForms, entries: _Entries) -> tuple[Any, ...]:
        """Add all forms to the trie twice, as spelt and as stems, and list the categories of each end."""
        table = PairTable()
        table.reserve(2 * forms.words.size)
        stems = self.vocabulary.stem[forms.words]
        spelt, state = kernel.grow(forms.words, forms.bounds, kernel.SPELT, 2, table.arrays)
        stemmed, states = kernel.grow(stems, forms.bounds, kernel.STEMMED, state, table.arrays)
        ends = np.concatenate([spelt, stemmed])
        factor = np.concatenate([forms.factor, forms.factor * STEMMED])
        phrase = np.concatenate([forms.phrase, forms.phrase])
        length = np.zeros(states, np.int64)
        length[ends] = np.tile(np.diff(forms.bounds), 2)
        starts, nodes, weights = _per_state(ends, factor, phrase, entries, states)
        return table.arrays, starts, nodes, weights, length


def _weigh(taxonomy: Taxonomy) -> _Entries:
    """Return each phrase's categories, weighted by provenance and by how ambiguous the phrase is."""
    lexicon = taxonomy.lexicon
    phrase, size = lexicon.phrase, len(lexicon)
    node, weight = lexicon.node.astype(np.int64), lexicon.weight.astype(np.float64)
    known = np.bincount(phrase, lexicon.curated, size) > 0
    weight = weight * np.where(lexicon.curated, 1.0, np.where(known[phrase], BESIDE_CURATED, WORDNET))
    everything = np.bincount(phrase, weight, size)[phrase]
    weight = weight * (weight / np.maximum(everything, 1e-9)) ** AMBIGUOUS
    return _Entries(phrase, node, weight * _topic_factor(taxonomy, node))


def _topic_factor(taxonomy: Taxonomy, nodes: IntArray) -> FloatArray:
    factor = np.ones(taxonomy.size)
    for topic, value in BY_TOPIC.items():
        if topic in taxonomy:
            factor[taxonomy.node(topic)] = value
    return np.asarray(factor[taxonomy.at_level(nodes, 1)], np.float64)


def _word_weights(
    taxonomy: Taxonomy, phrases: Tokens, stop: BoolArray, own: IntArray
) -> tuple[SurfaceForms, _Entries]:
    """Return words of curated phrases that are no curated phrases themselves, with weak weights.

    The lexicon may have `mortgage calculator` and `mortgage rates`, but not `mortgage payoff`: the word
    `mortgage` still points to banking. The phrases of a word must belong to few topics.
    """
    alone = (np.diff(phrases.bounds) == 1) & (own >= 0)
    category = np.repeat(own, np.diff(phrases.bounds))
    used = ~stop[phrases.codes] & (category >= 0)
    pairs, where = np.unique(np.stack([phrases.codes[used], category[used]]), axis=1, return_inverse=True)
    word, node = pairs
    by_category = np.bincount(where.ravel()).astype(np.float64)
    _, at = np.unique(np.stack([word, taxonomy.at_level(node, 1)]), axis=1, return_inverse=True)
    by_topic = np.bincount(at.ravel(), by_category)[at.ravel()]
    share = by_topic / (np.bincount(word, by_category)[word] + CAUTION)
    weight = BACKOFF * share * by_category / by_topic * _topic_factor(taxonomy, node)
    kept = (share >= LEAST_SHARE) & ~np.isin(word, phrases.codes[phrases.bounds[:-1][alone]])
    words, number = np.unique(word[kept], return_inverse=True)
    entries = _Entries(number + own.size, node[kept], weight[kept])
    return SurfaceForms.single_words(words, np.arange(words.size) + own.size), entries


def _per_state(
    ends: IntArray, factor: FloatArray, phrase: IntArray, entries: _Entries, states: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the categories of each state; where two forms end in one state, the larger weight counts."""
    first = np.searchsorted(entries.phrase, phrase)
    count = np.searchsorted(entries.phrase, phrase, side="right") - first
    row = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
    state, weight = np.repeat(ends, count), np.repeat(factor, count) * entries.weight[row]
    order = np.lexsort((-weight, entries.node[row], state))
    state, node, weight = state[order], entries.node[row][order], weight[order]
    fresh = np.ones(state.size, np.bool_)
    fresh[1:] = (state[1:] != state[:-1]) | (node[1:] != node[:-1])
    state, node, weight = state[fresh], node[fresh], weight[fresh]
    return np.searchsorted(state, np.arange(states + 1)), node, weight

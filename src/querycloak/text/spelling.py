"""Words of queries as words of the lexicon: split words joined, compounds split, misspelt words corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.text import _phrases as phrases
from querycloak.text import _spelling as kernel
from querycloak.text.lexicon import CURATED_WORD, UNKNOWN, FloatArray, Vocabulary
from querycloak.text.normalise import STOP_WORDS, BoolArray, IntArray, Tokens, in_tail, is_stop

SHORTEST, TWO_ERRORS_FROM = 4, 8  # letters from which one and two errors are corrected
LONGEST = kernel.MOST_LETTERS
MOST_PARTS, SHORTEST_PART, SHORTEST_COMPOUND = 5, 3, 6
SHORTEST_JOINED, LONGEST_START = 4, 5  # letters of a joined word, and of its first part
TRUST_BY_ERRORS = np.array([1.0, 0.9, 0.8, 0.7, 0.6])  # by halves of an error
TRUST_BY_LENGTH = np.array([0.0, 0.0, 0.0, 0.0, 0.5, 0.7, 0.9, 1.0])  # a short word may mean anything
TRUST_SPLIT = 0.85
COMMON = 80.0  # commonness of a word that a known, but rare word may be meant for
_SHORT_PARTS = frozenset(
    {"of", "in", "my", "to", "the", "for", "and", "you", "on", "at", "by", "us", "uk", "tv", "go", "it", "up"}
)
_GLUE = frozenset({"the", "a", "an", "to", "of", "in", "for", "and", "or", "on", "at", "is", "are", "no"})


def as_bytes(words: Sequence[str]) -> tuple[npt.NDArray[np.uint8], IntArray]:
    """Return words as one row of byte values, and their bounds."""
    encoded = [word.encode() for word in words]
    bounds = np.concatenate([[0], np.cumsum([len(word) for word in encoded], dtype=np.int64)])
    return np.frombuffer(b"".join(encoded), np.uint8), bounds.astype(np.int64)


class SpellingCorrector:
    """Finds the known word that a misspelt one probably means; the index is built on first use."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._lock = RLock()

    @cached_property
    def _index(self) -> tuple[IntArray, Any, Any]:
        """The words that a correction may lead to, their letters, and the deletions of these."""
        words, commonness = self._vocabulary.words, self._vocabulary.commonness
        curated = np.flatnonzero(commonness >= CURATED_WORD).tolist()
        known = np.array([i for i in curated if _is_correctable(words[i])], np.int64)
        letters, bounds = as_bytes([words[i] for i in known.tolist()])
        sizes = np.diff(bounds)
        buckets = 1 << max(10, int(30 * sizes.size).bit_length() - 1)
        common = np.log2(np.minimum(commonness[known], 1000.0))
        deletions = kernel.index_deletions(letters, bounds, _deletions(sizes), buckets)
        return known, (letters, bounds, common), deletions

    def correct(self, words: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Return each word's correction as a number of the vocabulary (-1: none), and halves of errors."""
        answer = np.full(len(words), UNKNOWN, np.int64)
        half_errors = np.zeros(len(words), np.int64)
        asked = np.array([i for i, word in enumerate(words) if _is_correctable(word)], np.int64)
        if asked.size:
            with self._lock:
                known, *index = self._index
            letters, bounds = as_bytes([words[i] for i in asked.tolist()])
            sizes = np.diff(bounds)
            allowed = 2 * (sizes >= SHORTEST).astype(np.int64) + 2 * (sizes >= TWO_ERRORS_FROM)
            near, half_errors[asked] = kernel.nearest(letters, bounds, _deletions(sizes), allowed, *index)
            answer[asked] = np.append(known, UNKNOWN)[near]
        return answer, half_errors


def _is_correctable(word: str) -> bool:
    return SHORTEST <= len(word) <= LONGEST and word.isascii() and word.isalpha()


def _deletions(sizes: IntArray) -> IntArray:
    """Return how many letters to leave out in search of a word: two where two vowels may be wrong."""
    return 1 + (sizes >= TWO_ERRORS_FROM - 2).astype(np.int64)


class CompoundSplitter:
    """Splits run-together words into words of the vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._lock = RLock()

    @cached_property
    def _table(self) -> tuple[Any, ...]:
        letters, bounds = as_bytes(self._vocabulary.words)
        return (*kernel.whole_words(letters, bounds), self._costs())

    def _costs(self) -> FloatArray:
        """Return the cost of each part: the rarer, the higher; short parts must be very common words."""
        words, common = self._vocabulary.words, self._vocabulary.commonness
        short = np.array([len(w) < SHORTEST_PART or w in STOP_WORDS for w in words], np.bool_)
        allowed = np.array([w in _SHORT_PARTS or len(w) > SHORTEST_PART for w in words], np.bool_)
        usable = np.where(short, allowed, (common >= CURATED_WORD) | np.array([len(w) >= 4 for w in words]))
        cost = np.log2(common.sum()) - np.log2(np.where(short, np.maximum(common, 200.0), common))
        return np.where(usable, cost, np.inf)

    def split(self, words: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Return each word's parts as numbers of the vocabulary, and their number (0: it stays whole)."""
        parts = np.full((len(words), MOST_PARTS), UNKNOWN, np.int64)
        count = np.zeros(len(words), np.int64)
        asked = [i for i, w in enumerate(words) if SHORTEST_COMPOUND <= len(w) <= LONGEST and w.isascii()]
        if asked:
            with self._lock:
                table = self._table
            letters, bounds = as_bytes([words[i] for i in asked])
            parts[asked], count[asked] = kernel.take_apart(letters, bounds, MOST_PARTS, *table)
        return parts, count


def join_split_words(tokens: Tokens, vocabulary: Vocabulary) -> Tokens:
    """Return tokens with `my space`, `wal mart` and the like written as one word."""
    made = _joined(tokens, vocabulary.spelt(tokens.words), is_stop(tokens.words), vocabulary)
    first = np.flatnonzero(made >= 0)
    if not first.size:
        return tokens
    fresh, where = np.unique(made[first], return_inverse=True)
    codes, kept = tokens.codes.copy(), np.ones(made.size, np.bool_)
    codes[first], kept[first + 1] = len(tokens.words) + where, False
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    words = [*tokens.words, *(vocabulary.words[i] for i in fresh.tolist())]
    return Tokens(codes[kept], before[tokens.bounds], words)


def _joined(tokens: Tokens, spelt: IntArray, stop: BoolArray, vocabulary: Vocabulary) -> IntArray:
    """Return for each word the number of the word that it and the next one make, -1 where there is none."""
    answer = np.full(tokens.codes.size, UNKNOWN, np.int64)
    first = _starts(tokens, spelt, stop, vocabulary)
    if first.size:
        pairs, where = np.unique(_pairs(tokens, first), axis=0, return_inverse=True)
        answer[first] = _words_of_pairs(pairs, tokens.words, spelt, vocabulary)[where.ravel()]
        for i in np.flatnonzero((answer[1:] >= 0) & (answer[:-1] >= 0)).tolist():
            if answer[i] >= 0:  # where pairs overlap, the first one counts
                answer[i + 1] = UNKNOWN
    return answer


def _pairs(tokens: Tokens, first: IntArray) -> IntArray:
    return np.stack([tokens.codes[first], tokens.codes[first + 1]], axis=1)


def _starts(tokens: Tokens, spelt: IntArray, stop: BoolArray, vocabulary: Vocabulary) -> IntArray:
    """Return the places of short words before another one, where one of the two is no common word."""
    sizes = np.array([len(word) for word in tokens.words], np.int64)
    short = (sizes > 0) & (sizes <= LONGEST_START)
    common = ~stop & (spelt >= 0)
    common[common] = vocabulary.commonness[spelt[common]] >= CURATED_WORD
    last = np.zeros(tokens.codes.size, np.bool_)
    last[tokens.bounds[1:] - 1] = True
    first = np.flatnonzero(short[tokens.codes] & ~last)
    one, two = _pairs(tokens, first).T if first.size else (first, first)
    return first[~(common[one] & common[two]) & (sizes[one] + sizes[two] >= SHORTEST_JOINED)]


def _words_of_pairs(pairs: IntArray, words: list[str], spelt: IntArray, vocabulary: Vocabulary) -> IntArray:
    """Look each pair up as one curated word; after `the`, `in`, ... only if the second is no word."""
    made = vocabulary.spelt([words[a] + words[b] for a, b in pairs.tolist()])
    glue = np.array([words[a] in _GLUE for a in pairs[:, 0].tolist()], np.bool_)
    good = (made >= 0) & (made < vocabulary.written) & ~(glue & (spelt[pairs[:, 1]] >= 0))
    good[good] = vocabulary.commonness[made[good]] >= CURATED_WORD
    return np.where(good, made, UNKNOWN)


@dataclass(frozen=True)
class ResolvedTokens:
    """Words in one row: numbers as spelt and as stems, flags, and the trust in each."""

    spelt: IntArray
    stem: IntArray
    flags: IntArray
    trust: FloatArray
    bounds: IntArray

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays in the order in which the kernel takes them."""
        return self.spelt, self.stem, self.flags, self.trust


@dataclass(frozen=True)
class _Words:
    """Distinct words, and what is known about each."""

    words: Sequence[str]
    spelt: IntArray
    stem: IntArray
    stop: BoolArray
    trust: FloatArray


class TokenResolver:
    """Resolves words against one vocabulary; an unknown word is corrected or split."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._spelling = SpellingCorrector(vocabulary)
        self._compounds = CompoundSplitter(vocabulary)

    def resolve(self, written: Tokens) -> ResolvedTokens:
        """Return the words of texts as numbers of the vocabulary."""
        tokens = join_split_words(written, self._vocabulary)
        words, codes = tokens.words, tokens.codes
        spelt, stem, stop = self._vocabulary.spelt(words), self._vocabulary.stemmed(words), is_stop(words)
        tail = in_tail(tokens, stop)
        known = _Words(words, spelt, stem, stop, np.ones(spelt.size))
        parts = self._repair(known)
        flags = stop[codes] * phrases.STOP + tail * phrases.TAIL
        whole = ResolvedTokens(spelt[codes], stem[codes], flags, known.trust[codes], tokens.bounds)
        return self._spread(whole, codes, parts) if parts else whole

    def _repair(self, known: _Words) -> dict[int, IntArray]:
        """Correct unknown words in place; return those that consist of several parts."""
        lost = np.flatnonzero((known.spelt < 0) & (known.stem < 0) & ~known.stop)
        texts = [known.words[i] for i in lost.tolist()]
        near, half_errors = self._spelling.correct(texts)
        parts, count = self._compounds.split(texts)
        compound = (count > 1) & ((near < 0) | (half_errors > 2))
        self._replace(known, lost, near, half_errors, (near >= 0) & ~compound)
        self._repair_rare(known)
        return {int(lost[i]): parts[i, : count[i]] for i in np.flatnonzero(compound)}

    def _repair_rare(self, known: _Words) -> None:
        """Correct words of WordNet alone, one error away from a common one: `wether` is no ram."""
        common = self._vocabulary.commonness
        rare = np.flatnonzero((known.spelt >= 0) & ~known.stop)
        rare = rare[common[known.spelt[rare]] < CURATED_WORD]
        near, half_errors = self._spelling.correct([known.words[i] for i in rare.tolist()])
        right = (near >= 0) & (half_errors <= 2)
        right[right] = common[near[right]] >= COMMON
        self._replace(known, rare, near, half_errors, right)

    def _replace(
        self, known: _Words, rows: IntArray, near: IntArray, half_errors: IntArray, right: BoolArray
    ) -> None:
        """Write the right corrections of these rows in place."""
        rows, near = rows[right], near[right]
        known.spelt[rows], known.stem[rows] = near, self._vocabulary.stem[near]
        length = np.array([len(known.words[i]) for i in rows.tolist()], np.int64)
        by_length = TRUST_BY_LENGTH[np.minimum(length, TRUST_BY_LENGTH.size - 1)]
        known.trust[rows] = TRUST_BY_ERRORS[half_errors[right]] * by_length

    def _spread(self, whole: ResolvedTokens, codes: IntArray, parts: dict[int, IntArray]) -> ResolvedTokens:
        """Return tokens with the parts of compounds in their place."""
        size = np.ones(int(codes.max()) + 1, np.int64)
        size[list(parts)] = [part.size for part in parts.values()]
        copies = size[codes]
        row = np.repeat(np.arange(codes.size), copies)
        spelt, stem, flags = whole.spelt[row], whole.stem[row], whole.flags[row]
        trust = whole.trust[row]
        many = np.flatnonzero(copies > 1)
        if many.size:
            at = np.cumsum(copies) - copies
            fill = np.concatenate([np.arange(at[i], at[i] + copies[i]) for i in many])
            spelt[fill] = np.concatenate([parts[int(codes[i])] for i in many])
            stem[fill], trust[fill] = self._vocabulary.stem[spelt[fill]], TRUST_SPLIT
            flags[fill] = flags[fill] & ~phrases.STOP | self._vocabulary.stop[spelt[fill]] * phrases.STOP
        ends = np.concatenate([[0], np.cumsum(copies)])
        return ResolvedTokens(spelt, stem, flags, trust, ends[whole.bounds])

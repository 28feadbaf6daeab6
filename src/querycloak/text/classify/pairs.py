"""Words written apart that belong together: `my space`, `wal mart`, `face book`."""

from __future__ import annotations

import numpy as np

from querycloak.text.classify.result import UNKNOWN, IntArray
from querycloak.text.classify.vocabulary import Vocabulary
from querycloak.text.normalise import BoolArray, Tokens, is_stop

SHORTEST = 4  # letters of what they make together
LONGEST_START = 5  # letters of the first part; longer ones are words in their own right
IN_LEXICON = 5.0
_GLUE = frozenset({"the", "a", "an", "to", "of", "in", "for", "and", "or", "on", "at", "is", "are", "no"})


def join_pairs(tokens: Tokens, vocabulary: Vocabulary) -> Tokens:
    """Write as one word what belongs together."""
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
    """Give for each word the number of what it and the next one make together, -1 where they make nothing."""
    answer = np.full(tokens.codes.size, UNKNOWN, np.int64)
    first = _starts(tokens, spelt, stop, vocabulary)
    if first.size:
        pairs, where = np.unique(_pair(tokens, first), axis=0, return_inverse=True)
        answer[first] = _made(pairs, tokens.words, spelt, vocabulary)[where.ravel()]
        _one_pair_each(answer)
    return answer


def _one_pair_each(answer: IntArray) -> None:
    """Where pairs overlap, the first one stands."""
    for i in np.flatnonzero((answer[1:] >= 0) & (answer[:-1] >= 0)).tolist():
        if answer[i] >= 0:
            answer[i + 1] = UNKNOWN


def _pair(tokens: Tokens, first: IntArray) -> IntArray:
    return np.stack([tokens.codes[first], tokens.codes[first + 1]], axis=1)


def _starts(tokens: Tokens, spelt: IntArray, stop: BoolArray, vocabulary: Vocabulary) -> IntArray:
    """Give the places of short words that another one follows, where one of the two is not telling."""
    sizes = np.array([len(word) for word in tokens.words], np.int64)
    short = (sizes > 0) & (sizes <= LONGEST_START)
    telling = ~stop & (spelt >= 0)
    telling[telling] = vocabulary.commonness[spelt[telling]] >= IN_LEXICON
    last = np.zeros(tokens.codes.size, np.bool_)
    last[tokens.bounds[1:] - 1] = True
    first = np.flatnonzero(short[tokens.codes] & ~last)
    one, two = _pair(tokens, first).T if first.size else (first, first)
    return first[~(telling[one] & telling[two]) & (sizes[one] + sizes[two] >= SHORTEST)]


def _made(pairs: IntArray, words: list[str], spelt: IntArray, vocabulary: Vocabulary) -> IntArray:
    """Look each pair up as one word of the lexicon; after `the`, `in`, ... only if the second is no word."""
    made = vocabulary.spelt([words[a] + words[b] for a, b in pairs.tolist()])
    glue = np.array([words[a] in _GLUE for a in pairs[:, 0].tolist()], np.bool_)
    good = (made >= 0) & (made < vocabulary.written) & ~(glue & (spelt[pairs[:, 1]] >= 0))
    good[good] = vocabulary.commonness[made[good]] >= IN_LEXICON
    return np.where(good, made, UNKNOWN)

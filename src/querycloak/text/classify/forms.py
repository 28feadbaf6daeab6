"""The ways in which a phrase may be written: as spelt, without stop words, run together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from querycloak.text.classify.result import FloatArray, IntArray
from querycloak.text.classify.vocabulary import Vocabulary
from querycloak.text.normalise import STOP_WORDS, BoolArray, Tokens

WITHOUT_STOP_WORDS = 0.9  # `bank america` for `bank of america`
LEFT_ALONE = 0.4  # `sale` for `for sale`
JOINED = 0.95  # `bankofamerica`
IN_LEXICON = 5.0  # how much commoner a phrase of the lexicon makes its words than one of WordNet


@dataclass(frozen=True)
class Forms:
    """Ways to write phrases: word numbers in one row, the phrase each stands for, and a factor."""

    words: IntArray
    bounds: IntArray
    phrase: IntArray
    factor: FloatArray


def without_stop_words(tokens: Tokens, stop: BoolArray, in_lexicon: BoolArray) -> Forms:
    """Give the phrases that hold stop words again without them; one word left alone must be the lexicon's."""
    content = ~stop[tokens.codes]
    kept = np.add.reduceat(content.astype(np.int64), tokens.bounds[:-1])
    changed = (kept > 1 - in_lexicon) & (kept > 0) & (kept < np.diff(tokens.bounds))
    words = tokens.codes[content & np.repeat(changed, np.diff(tokens.bounds))]
    sizes = kept[changed]
    factor = np.where(sizes > 1, WITHOUT_STOP_WORDS, LEFT_ALONE)
    return Forms(words, _bounds(sizes), np.flatnonzero(changed), factor)


def as_spelt(tokens: Tokens, phrases: IntArray) -> Forms:
    """Give phrases as they are spelt."""
    chosen = np.zeros(tokens.bounds.size - 1, np.bool_)
    chosen[phrases] = True
    words = tokens.codes[np.repeat(chosen, np.diff(tokens.bounds))]
    return Forms(words, _bounds(np.diff(tokens.bounds)[chosen]), phrases, np.ones(phrases.size))


def _bounds(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def together(*forms: Forms) -> Forms:
    """Put several lists of forms into one."""
    sizes = np.concatenate([np.diff(each.bounds) for each in forms])
    return Forms(
        np.concatenate([each.words for each in forms]),
        _bounds(sizes),
        np.concatenate([each.phrase for each in forms]),
        np.concatenate([each.factor for each in forms]),
    )


def joined(texts: pl.Series, lexical: IntArray) -> tuple[IntArray, pl.Series]:
    """Give the lexicon's phrases of several words written as one, as in addresses."""
    several = texts[lexical].str.contains(" ").to_numpy()
    joined = texts[lexical[several]].str.replace_all(" ", "", literal=True)
    long = (joined.str.len_chars() >= 6).to_numpy()
    return lexical[several][long], joined.filter(pl.Series(long))


def all_forms(
    texts: pl.Series, phrases: Tokens, stop: BoolArray, in_lexicon: BoolArray
) -> tuple[Vocabulary, Forms]:
    """Number all words and list all ways to write each phrase."""
    which, written = joined(texts, np.flatnonzero(in_lexicon))
    vocabulary, numbers = _vocabulary(phrases, written, in_lexicon)
    run_on = replace(single_words(numbers, which), factor=np.full(numbers.size, JOINED))
    spoken = np.flatnonzero(~_silent(phrases, stop, in_lexicon))
    bare = without_stop_words(phrases, stop, in_lexicon)
    return vocabulary, together(as_spelt(phrases, spoken), bare, run_on)


def single_words(words: IntArray, phrase: IntArray) -> Forms:
    """Give single words as forms of phrases."""
    return Forms(words, np.arange(words.size + 1), phrase, np.ones(words.size))


def _silent(phrases: Tokens, stop: BoolArray, in_lexicon: BoolArray) -> BoolArray:
    """Mark phrases of stop words only; the lexicon may still have numbers (`1099`) and whole idioms."""
    empty = np.array([word in STOP_WORDS or not word for word in phrases.words], np.bool_)
    single = np.diff(phrases.bounds) == 1
    content = np.add.reduceat((~stop[phrases.codes]).astype(np.int64), phrases.bounds[:-1])
    alone = single & empty[phrases.codes[phrases.bounds[:-1]]]
    return np.asarray(alone | ((content == 0) & ~in_lexicon), np.bool_)


def _vocabulary(phrases: Tokens, joined: pl.Series, in_lexicon: BoolArray) -> tuple[Vocabulary, IntArray]:
    """Number the words of phrases, then the joined forms; a word of the lexicon counts as common."""
    weight = np.repeat(np.where(in_lexicon, IN_LEXICON, 1.0), np.diff(phrases.bounds))
    common = np.bincount(phrases.codes, weight, len(phrases.words))
    known = {word: i for i, word in enumerate(phrases.words)}
    numbers = [known.setdefault(word, len(known)) for word in joined.to_list()]
    commonness = np.concatenate([common, np.full(len(known) - common.size, IN_LEXICON)])
    vocabulary = Vocabulary(list(known), commonness, written=common.size)
    return vocabulary, np.array(numbers, np.int64)
